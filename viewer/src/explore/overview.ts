// The first view: sizes, leaks, what grew, waste, the largest classes and objects.

import { fill, h, name, put } from "../dom";
import { bytes, counted, thousands } from "../units";
import { ask, messageOf, total, type ClassRow, type HeapFacts, type Meta, type ObjectRow, type OutOfMemory, type Table } from "./api";
import { grown } from "./compare";
import { leakList, wasteSums } from "./findings";
import { classColumns } from "./lists";
import { encode, type Place } from "./place";
import { objectColumns, section, table, type ColumnOf } from "./rows";

/** Number of rows of a list. */
const MAX_ROWS = 10;
/** Number of groups of leaks. */
const MAX_LEAKS = 3;

/** Meaning of the models of shallow sizes. */
const SIZES = {
  dump: "as in the dump: fields and elements, without array headers",
  mat: "as in Eclipse MAT: with headers and alignment",
  art: "as in ART: with headers and alignment",
  hotspot: "as in HotSpot (jmap -histo)",
};

/** Returns the overview. */
export async function overview(_place: Place, meta: Meta, signal: AbortSignal): Promise<HTMLElement> {
  // They take longer than the rest.
  const leaks = later("Looking for leaks …", leakList(MAX_LEAKS, signal), signal);
  const waste = later("Looking for waste …", wasteSums(signal), signal);
  const [byClass, largest, heaps, growth] = await Promise.all([
    ask<Table<ClassRow>>("classes", { by: "class", limit: MAX_ROWS }, signal),
    ask<Table<ObjectRow>>("objects", { top: true, limit: MAX_ROWS }, signal),
    ask<Table<ClassRow>>("classes", { by: "heap", limit: MAX_ROWS }, signal),
    grown(meta, signal),
  ]);
  return h(
    "div",
    { class: "columns" },
    growth,
    section("Leaks", leaks),
    section("Sizes", sizes(meta, heaps.total > 1 ? heaps.rows : [])),
    meta.out_of_memory && outOfMemory(meta.out_of_memory),
    section("Waste", waste),
    section("Largest classes", few("Classes", byClass, classColumns("class", false), { view: "classes" })),
    section("Top of the dominator tree", few("Objects", largest, objectColumns(false), { view: "dominators" })),
    meta.heap && section(meta.before ? "Sources" : "Source", meta.before && source(meta.before), source(meta.heap)),
  );
}

function sizes({ reachable, unreachable, ...meta }: Meta, heaps: ClassRow[]): HTMLElement {
  return facts([
    ["Reachable", reachable ? `${bytes(total(reachable))} in ${counted(reachable.count, "object")}` : "…"],
    ["Java", reachable ? bytes(reachable.java_bytes) : "…"],
    ["Native", reachable ? bytes(reachable.native_bytes) : "…"],
    ["Unreachable", unreachable ? `${bytes(total(unreachable))} in ${counted(unreachable.count, "object")}` : "…"],
    ["Loaded classes", thousands(meta.classes)],
    ["GC roots", thousands(meta.roots)],
    ...heaps.map((row): [string, string] => [`Heap ${row.name}`, `${bytes(row.shallow_bytes)} in ${counted(row.count, "object")}`]),
  ]);
}

/** Returns a place for what takes longer. */
function later(words: string, content: Promise<Node>, signal: AbortSignal): HTMLElement {
  const place = h("div", null, h("p", { class: "soft" }, words));
  content.then(
    (made) => fill(place, made),
    (error: unknown) => {
      if (!signal.aborted) fill(place, h("p", { class: "failed", role: "alert" }, name(messageOf(error))));
    },
  );
  return place;
}

function source(heap: HeapFacts): HTMLElement {
  const isHprof = heap.source === "hprof";
  return facts([
    ["Dump", name(heap.path)],
    ["Number", heap.dumps > 1 && `${heap.number} of ${heap.dumps}`],
    ["Label", heap.label !== null && name(heap.label)],
    ["Process", heap.process !== null && name(heap.pid === null ? heap.process : `${heap.process} (${heap.pid})`)],
    ["Time", heap.time ?? false],
    ["Format", isHprof ? name(["HPROF", heap.version].filter(Boolean).join(", ")) : "heap graph of android.java_hprof"],
    ["Shallow sizes", isHprof ? SIZES[heap.sizes] : "as the runtime reports them"],
    ["Reason", heap.reason !== null && name(heap.reason)],
    ["Not followed", heap.excluded.length > 0 && `${heap.excluded.join(", ")} references`],
  ]);
}

function outOfMemory(error: OutOfMemory): HTMLElement {
  return section(
    "OutOfMemoryError",
    h("p", null, `The app could not allocate ${bytes(error.allocation_bytes)}. ${bytes(error.free_bytes)} were free, and the heap could grow by ${bytes(error.free_until_oom_bytes)}.`),
    error.message === null ? null : h("p", null, name(error.message)),
    h("ol", { class: "path" }, ...error.stack.map((frame) => h("li", null, h("code", null, name(frame))))),
  );
}

/** Returns the first rows of a list, with a link to all. */
function few<Row>(label: string, answer: Table<Row>, columns: ColumnOf<Row>[], place: Place): HTMLElement {
  const rows = table({ label, noun: "row", place, sort: "", columns, empty: "The heap has no reachable objects.", rows: answer.rows, total: answer.rows.length });
  const whole = answer.total + (answer.left_out ?? 0);
  return h("div", null, rows, whole > answer.rows.length && h("p", null, h("a", { href: encode(place) }, `All ${thousands(whole)}`)));
}

/** Returns names with their values, without those that are false. */
export function facts(rows: [string, Node | string | false][]): HTMLElement {
  const list = h("dl", { class: "pairs" });
  for (const [title, value] of rows) {
    if (value !== false) put(list, h("dt", null, title), h("dd", null, value));
  }
  return list;
}
