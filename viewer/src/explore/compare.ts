// What changed since the earlier heap: leaks and classes.

import { h, name } from "../dom";
import { bytes, counted, signed, thousands } from "../units";
import { ask, type ChangedClass, type ChangedLeak, type Figures, type Meta, type Table } from "./api";
import { BLOCK, grid, startOf } from "./grid";
import { encode, type Place } from "./place";
import type { ColumnOf } from "./rows";

/** Returns the comparison of a place. */
export async function compareView(place: Place, meta: Meta, signal: AbortSignal): Promise<HTMLElement> {
  if (!meta.before) return h("p", { class: "soft" }, "The other heap is not read yet.");
  const sort = place.sort ?? "retained";
  const load = (offset: number, limit: number): Promise<Table<ChangedClass>> =>
    ask("changes", { sort, reverse: place.reverse, filter: place.filter, offset, limit }, signal);
  const [leaks, classes] = await Promise.all([ask<ChangedLeak[]>("changed-leaks", {}, signal), load(startOf(place), BLOCK)]);
  const { path, label, time } = meta.before;
  return h(
    "div",
    null,
    h("p", null, "Compared with ", name([path, label, time].filter((word) => word !== null).join(", ")), "."),
    h("h2", null, "Leaks"),
    leaks.length === 0 ? h("p", { class: "soft" }, "Neither heap has leaks.") : leakTable(leaks),
    h("h2", null, "Classes that changed"),
    grid<ChangedClass>({
      label: "Classes that changed",
      noun: "row",
      place,
      sort,
      ...classes,
      empty: place.filter ? "No name contains this text." : "Nothing changed.",
      columns: COLUMNS,
      load: async (offset, limit) => (await load(offset, limit)).rows,
    }),
  );
}

/** Returns the retained bytes, Java and native. */
function kept(of: Figures): number {
  return of.retained_bytes + of.retained_native_bytes;
}

function leakTable(leaks: ChangedLeak[]): HTMLElement {
  const row = (leak: ChangedLeak): HTMLElement =>
    h(
      "tr",
      null,
      h("td", null, h("span", { class: `tag ${leak.status === "new" ? "bad" : ""}` }, leak.status), ` ${leak.what}: `, leak.after_count > 0 ? h("a", { href: encode({ view: "leaks" }) }, name(leak.class)) : name(leak.class)),
      h("td", { class: "n" }, `${thousands(leak.before_count)} → ${thousands(leak.after_count)}`),
      h("td", { class: "n" }, `${bytes(leak.before_bytes)} → ${bytes(leak.after_bytes)}`),
    );
  const heads = ["Leak", "Objects", "Retained"].map((head, at) => h("th", { scope: "col", class: at > 0 ? "n" : null }, head));
  return h(
    "div",
    { class: "paged" },
    h(
      "div",
      { class: "wide", tabindex: 0, role: "region", "aria-label": "Leaks" },
      h("table", { "aria-label": "Leaks" }, h("thead", null, h("tr", null, ...heads)), h("tbody", null, ...leaks.map(row))),
    ),
  );
}

function change(before: number, after: number, unit: "bytes" | "count"): HTMLElement {
  const words = unit === "bytes" ? [bytes(before), bytes(after)] : [thousands(before), thousands(after)];
  return h("span", { title: `${words[0]} → ${words[1]}` }, before === after ? "" : signed(after - before, unit));
}

const COLUMNS: ColumnOf<ChangedClass>[] = [
  {
    title: "Class",
    sort: "name",
    cell: (row) => h("span", null, row.after.count > 0 ? h("a", { href: encode({ view: "objects", class: row.name }) }, name(row.name)) : name(row.name), " ", h("span", { class: "soft" }, row.status)),
  },
  { title: "Count", numeric: true, cell: (row) => thousands(row.after.count) },
  { title: "Change", numeric: true, sort: "count", hint: "Change of the number of objects", cell: (row) => change(row.before.count, row.after.count, "count") },
  { title: "Shallow", numeric: true, sort: "shallow", hint: "Change of the bytes of the objects", cell: (row) => change(row.before.shallow_bytes, row.after.shallow_bytes, "bytes") },
  { title: "Native", numeric: true, sort: "native", hint: "Change of the native bytes that they own", cell: (row) => change(row.before.native_bytes, row.after.native_bytes, "bytes") },
  { title: "Retained", numeric: true, sort: "retained", hint: "Change of the bytes that would be freed with them", cell: (row) => change(kept(row.before), kept(row.after), "bytes") },
];

/** Returns the number of new leaks and the classes that grew most, for the overview. */
export async function grown(meta: Meta, signal: AbortSignal): Promise<HTMLElement | null> {
  if (!meta.before) return null;
  const [leaks, classes] = await Promise.all([ask<ChangedLeak[]>("changed-leaks", {}, signal), ask<Table<ChangedClass>>("changes", { limit: 10 }, signal)]);
  const fresh = leaks.filter(({ status }) => status === "new").length;
  const grew = classes.rows.filter((row) => kept(row.after) > kept(row.before));
  return h(
    "section",
    null,
    h("h2", null, "What grew"),
    h("p", null, h("a", { href: encode({ view: "compare" }) }, fresh > 0 ? `${counted(fresh, "new leak")}` : "No new leak"), " since the earlier heap."),
    h("ul", null, ...grew.map((row) => h("li", null, `${signed(kept(row.after) - kept(row.before), "bytes")} `, h("a", { href: encode({ view: "objects", class: row.name }) }, name(row.name))))),
  );
}
