// What changed since the earlier heap: leaks and classes.

import { h, name, sentence } from "../dom";
import { bytes, counted, signed, thousands } from "../units";
import { ask, type ChangedClass, type ChangedLeak, type ChangedNode, type Figures, type HeapFacts, type Meta, type Table } from "./api";
import { leakAddress } from "./findings";
import { BLOCK, grid, startOf } from "./grid";
import { encode, type Place } from "./place";
import { classLink, plain, type ColumnOf } from "./rows";

/** Indentation of a level, in px. */
const INDENT = 16;
/** Number of classes in the overview. */
const MAX_GROWN = 10;

/** Returns the comparison of a place. */
export async function compareView(place: Place, meta: Meta, signal: AbortSignal): Promise<HTMLElement> {
  if (!meta.before) return h("p", { class: "soft" }, sentence(meta.step ? "The earlier heap is not compared yet." : "There is no earlier heap to compare with. To compare two heaps, run `heaptap explore` with the earlier and the later one."));
  const sort = place.sort ?? "retained";
  const load = (offset: number, limit: number): Promise<Table<ChangedClass>> =>
    ask("changes", { sort, reverse: place.reverse, filter: place.filter, offset, limit }, signal);
  const [leaks, nodes, classes] = await Promise.all([
    ask<ChangedLeak[]>("changed-leaks", {}, signal),
    ask<ChangedNode[]>("changed-dominators", {}, signal),
    load(startOf(place), BLOCK),
  ]);
  return h(
    "div",
    null,
    h("p", null, meta.change && sum(meta.change), " since ", dumpName(meta.before), "."),
    meta.heap?.source !== meta.before.source && h("p", { class: "soft" }, "The dumps are of different kinds, which differ in their GC roots and in the sizes of arrays and strings."),
    plain("Leaks", LEAK_HEADS, bySize(leaks).map(leakCells)) ?? h("p", { class: "soft" }, "Neither heap has leaks."),
    h("h2", null, "Classes that changed"),
    grid<ChangedClass>({
      ...classes,
      label: "Classes that changed",
      noun: "row",
      place,
      sort,
      empty: place.filter ? `No name contains “${place.filter}”.` : "Nothing changed.",
      columns: COLUMNS,
      signal,
      load: async (offset, limit) => (await load(offset, limit)).rows,
    }),
    nodeTable(nodes),
  );
}

/** Returns the file, label and time of a dump. */
function dumpName({ path, label, time }: HeapFacts): HTMLElement {
  return name([path, label, time].filter((word) => word !== null).join(", "));
}

/** Returns how much the whole heap grew. */
function sum({ before, after }: { before: Figures; after: Figures }): HTMLElement {
  const own = (of: Figures): number => of.shallow_bytes + of.native_bytes;
  const count = after.count - before.count;
  return h("b", null, `${signed(own(after) - own(before), "bytes")} in ${count > 0 ? "+" : ""}${counted(count, "object")}`);
}

/** Returns the retained bytes, Java and native. */
function retainedOf(of: Figures): number {
  return of.retained_bytes + of.retained_native_bytes;
}

const LEAK_HEADS = ["Leak", "Objects", "Retained"];

/** Returns leaks in order: new ones, those that grew, and the others; the largest first. */
function bySize(leaks: ChangedLeak[]): ChangedLeak[] {
  const rank = ({ status }: ChangedLeak): number => ["new", "grown"].indexOf(status) >>> 0;
  return [...leaks].sort((a, b) => rank(a) - rank(b) || b.after_bytes - a.after_bytes);
}

function leakCells(leak: ChangedLeak): (Node | string)[] {
  const words = [`${leak.what}: `, name(leak.class)];
  return [
    h(
      "span",
      null,
      h("span", { class: `tag ${leak.status === "new" || leak.status === "grown" ? "bad" : ""}` }, leak.status),
      " ",
      leak.after_count > 0 ? h("a", { href: leakAddress(leak) }, ...words) : h("span", null, ...words),
      leak.path && h("span", { class: "soft" }, " via ", name(leak.path)),
    ),
    `${thousands(leak.before_count)} → ${thousands(leak.after_count)}`,
    `${bytes(leak.before_bytes)} → ${bytes(leak.after_bytes)}`,
  ];
}

/** Returns the nodes of the dominator tree that changed most, each below its dominator. */
function nodeTable(nodes: ChangedNode[]): HTMLElement | null {
  const cells = (node: ChangedNode): (Node | string)[] => {
    const title = h("span", null, classOf(node), " ", h("span", { class: "soft" }, node.status));
    title.style.paddingInlineStart = `${INDENT * node.depth}px`;
    return [title, change(node.before.count, node.after.count, "count"), change(retainedOf(node.before), retainedOf(node.after), "bytes")];
  };
  return plain("Dominator tree", ["Class below its dominator", "Objects", "Retained"], nodes.map(cells));
}

/** Returns the name of a class, with a link to its objects if there are any. */
function classOf(row: ChangedClass): HTMLElement {
  return row.after.count > 0 ? classLink(row.name) : name(row.name);
}

function change(before: number, after: number, unit: "bytes" | "count"): HTMLElement {
  const words = unit === "bytes" ? [bytes(before), bytes(after)] : [thousands(before), thousands(after)];
  return h("span", { title: `${words[0]} → ${words[1]}` }, before === after ? "–" : signed(after - before, unit));
}

const COLUMNS: ColumnOf<ChangedClass>[] = [
  { title: "Class", sort: "name", cell: (row) => h("span", null, classOf(row), " ", h("span", { class: "soft" }, row.status)) },
  { title: "Objects now", numeric: true, minor: true, cell: (row) => thousands(row.after.count) },
  { title: "Objects", numeric: true, sort: "count", hint: "Change of the number of objects", cell: (row) => change(row.before.count, row.after.count, "count") },
  { title: "Shallow", numeric: true, minor: true, sort: "shallow", hint: "Change of the bytes of the objects", cell: (row) => change(row.before.shallow_bytes, row.after.shallow_bytes, "bytes") },
  { title: "Native", numeric: true, minor: true, sort: "native", hint: "Change of the native bytes that they own", cell: (row) => change(row.before.native_bytes, row.after.native_bytes, "bytes") },
  { title: "Retained", numeric: true, sort: "retained", hint: "Change of the bytes that would be freed with them, Java and native", cell: (row) => change(retainedOf(row.before), retainedOf(row.after), "bytes") },
];

/** Returns the leaks that are new or grew, and the classes that grew most, for the overview. */
export async function grown(meta: Meta, signal: AbortSignal): Promise<HTMLElement | null> {
  if (!meta.before) return null;
  const [leaks, classes] = await Promise.all([ask<ChangedLeak[]>("changed-leaks", {}, signal), ask<Table<ChangedClass>>("changes", { limit: MAX_GROWN }, signal)]);
  const worse = bySize(leaks).filter(({ status }) => status === "new" || status === "grown");
  const isUnknown = [...leaks, ...classes.rows].some(({ status }) => status === "unknown");
  // A class with more objects is rather the cause than one whose objects retain more.
  const hasMore = (row: ChangedClass): number => Number(row.after.count > row.before.count);
  const grew = classes.rows.filter((row) => row.status !== "unknown" && retainedOf(row.after) > retainedOf(row.before)).sort((a, b) => hasMore(b) - hasMore(a));
  const rows = grew.map((row) => [classOf(row), `${thousands(row.before.count)} → ${thousands(row.after.count)}`, change(retainedOf(row.before), retainedOf(row.after), "bytes")]);
  return h(
    "section",
    { class: "grown" },
    h("h2", null, "What grew"),
    h("p", null, meta.change && sum(meta.change), " since ", dumpName(meta.before), ". ", h("a", { href: encode({ view: "compare" }) }, "Compare")),
    plain("Leaks that are new or grew", LEAK_HEADS, worse.map(leakCells)) ?? h("p", null, isUnknown ? "Whether a leak is new or grew is unknown, because a dump lacks objects." : "No leak is new, and none grew."),
    plain("Classes that grew", ["Class", "Objects", "Retained"], rows) ?? h("p", { class: "soft" }, isUnknown ? "Which classes grew is unknown." : "No class grew."),
  );
}
