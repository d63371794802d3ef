// What changed since the earlier heap: leaks and classes.

import { h, name } from "../dom";
import { bytes, counted, signed, thousands } from "../units";
import { ask, type ChangedClass, type ChangedLeak, type ChangedNode, type Figures, type Meta, type Table } from "./api";
import { BLOCK, grid, startOf } from "./grid";
import { encode, type Place } from "./place";
import { plain, type ColumnOf } from "./rows";

/** Indentation of a level, in px. */
const INDENT = 16;

/** Returns the comparison of a place. */
export async function compareView(place: Place, meta: Meta, signal: AbortSignal): Promise<HTMLElement> {
  if (!meta.before) return h("p", { class: "soft" }, "The other heap is not read yet.");
  const sort = place.sort ?? "retained";
  const load = (offset: number, limit: number): Promise<Table<ChangedClass>> =>
    ask("changes", { sort, reverse: place.reverse, filter: place.filter, offset, limit }, signal);
  const [leaks, nodes, classes] = await Promise.all([
    ask<ChangedLeak[]>("changed-leaks", {}, signal),
    ask<ChangedNode[]>("changed-dominators", {}, signal),
    load(startOf(place), BLOCK),
  ]);
  const { path, label, time } = meta.before;
  return h(
    "div",
    null,
    h("p", null, meta.change && sum(meta.change), " since ", name([path, label, time].filter((word) => word !== null).join(", ")), "."),
    meta.heap?.source !== meta.before.source && h("p", { class: "soft" }, "The dumps are of different kinds, which differ in their GC roots and in the sizes of arrays and strings."),
    leakTable(leaks) ?? h("p", { class: "soft" }, "Neither heap has leaks."),
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
    nodeTable(nodes),
  );
}

/** Returns how much the whole heap grew. */
function sum({ before, after }: { before: Figures; after: Figures }): HTMLElement {
  const own = (of: Figures): number => of.shallow_bytes + of.native_bytes;
  const count = after.count - before.count;
  return h("b", null, `${signed(own(after) - own(before), "bytes")} in ${count > 0 ? "+" : ""}${counted(count, "object")}`);
}

/** Returns the retained bytes, Java and native. */
function kept(of: Figures): number {
  return of.retained_bytes + of.retained_native_bytes;
}

function leakTable(leaks: ChangedLeak[]): HTMLElement | null {
  const cells = (leak: ChangedLeak): (Node | string)[] => [
    h("span", null, h("span", { class: `tag ${leak.status === "new" ? "bad" : ""}` }, leak.status), ` ${leak.what}: `, leak.after_count > 0 ? h("a", { href: encode({ view: "leaks" }) }, name(leak.class)) : name(leak.class)),
    `${thousands(leak.before_count)} → ${thousands(leak.after_count)}`,
    `${bytes(leak.before_bytes)} → ${bytes(leak.after_bytes)}`,
  ];
  return plain("Leaks", ["Leak", "Objects", "Retained"], leaks.map(cells));
}

/** Returns the nodes of the dominator tree that changed most, each below its dominator. */
function nodeTable(nodes: ChangedNode[]): HTMLElement | null {
  const cells = (node: ChangedNode): (Node | string)[] => {
    const title = h("span", null, objects(node), " ", h("span", { class: "soft" }, node.status));
    title.style.paddingInlineStart = `${INDENT * node.depth}px`;
    return [title, change(node.before.count, node.after.count, "count"), change(kept(node.before), kept(node.after), "bytes")];
  };
  return plain("Dominator tree", ["Class below its dominator", "Objects", "Retained"], nodes.map(cells));
}

/** Returns the name of a class, with a link to its objects if there are any. */
function objects(row: ChangedClass): HTMLElement {
  return row.after.count > 0 ? h("a", { href: encode({ view: "objects", class: row.name }) }, name(row.name)) : name(row.name);
}

function change(before: number, after: number, unit: "bytes" | "count"): HTMLElement {
  const words = unit === "bytes" ? [bytes(before), bytes(after)] : [thousands(before), thousands(after)];
  return h("span", { title: `${words[0]} → ${words[1]}` }, before === after ? "" : signed(after - before, unit));
}

const COLUMNS: ColumnOf<ChangedClass>[] = [
  {
    title: "Class",
    sort: "name",
    cell: (row) => h("span", null, objects(row), " ", h("span", { class: "soft" }, row.status)),
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
    h("ul", null, ...grew.map((row) => h("li", null, `${signed(kept(row.after) - kept(row.before), "bytes")} `, objects(row)))),
  );
}
