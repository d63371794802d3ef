// Views of the heap: each returns its content for a place.

import { button, fill, h, name, put, sentence } from "../dom";
import { bytes, counted, percent, thousands } from "../units";
import {
  answers,
  ask,
  kept,
  total,
  type Cell,
  type ClassRow,
  type FieldRow,
  type HeapFacts,
  type Meta,
  type ObjectFacts,
  type ObjectRow,
  type OutOfMemory,
  type Path,
  type ReferrerRow,
  type Table,
} from "./api";
import { leakList, wasteSums, wasteView } from "./findings";
import { compareView, grown } from "./compare";
import { flameView } from "./flame";
import { holderTree } from "./holders";
import { BLOCK, grid, startOf } from "./grid";
import { bitmaps, picture, pixelFacts } from "./pictures";
import { encode, type Place } from "./place";
import { objectColumns, objectLink, PAGE_ROWS, retained, size, table, verdictTag, type ColumnOf } from "./rows";
import { search } from "./search";
import { sqlView } from "./sql";
import { room } from "./room";
import { treemap } from "./treemap";

/** Maximum width and height of the picture of one bitmap. */
const WHOLE = 2048;
/** Number of rows of a list in the overview. */
const FEW = 10;
const GROUPS = { class: "Classes", package: "Packages", superclass: "Superclasses", heap: "Heaps", loader: "Class loaders" };

export type Render = (place: Place, meta: Meta, signal: AbortSignal) => Promise<HTMLElement>;

export const RENDER: Record<Place["view"], Render> = {
  overview,
  leaks: async (_place, _meta, signal) => section("Leaks", await leakList(Infinity, signal)),
  classes,
  objects,
  dominators,
  flame: (place, meta, signal) => flameView(place, meta, signal),
  strings: (place, _meta, signal) => search("strings", place, signal),
  arrays: (place, _meta, signal) => search("arrays", place, signal),
  bitmaps: (place, meta, signal) => bitmaps(place, meta, signal),
  waste: (_place, _meta, signal) => wasteView(signal),
  compare: compareView,
  sql: (place, _meta, signal) => sqlView(place, signal),
  object,
};

async function overview(_place: Place, meta: Meta, signal: AbortSignal): Promise<HTMLElement> {
  // They take longer than the rest.
  const leaks = later("Looking for leaks …", leakList(3, signal), signal);
  const waste = later("Looking for waste …", wasteSums(signal), signal);
  const [byClass, largest, heaps, growth] = await Promise.all([
    ask<Table<ClassRow>>("classes", { by: "class", limit: FEW }, signal),
    ask<Table<ObjectRow>>("objects", { top: true, limit: FEW }, signal),
    ask<Table<ClassRow>>("classes", { by: "heap", limit: FEW }, signal),
    grown(meta, signal),
  ]);
  const reachable = meta.reachable;
  return h(
    "div",
    { class: "columns" },
    section(
      "Sizes",
      facts([
        ["Reachable", reachable ? `${bytes(total(reachable))} in ${counted(reachable.count, "object")}` : "…"],
        ["Java", reachable ? bytes(reachable.java_bytes) : "…"],
        ["Native", reachable ? bytes(reachable.native_bytes) : "…"],
        ["Unreachable", reachable ? counted(meta.objects - reachable.count, "object") : "…"],
        ["Classes", thousands(meta.classes)],
        ["GC roots", thousands(meta.roots)],
        ...heaps.rows.map((row): [string, string] => [`Heap ${row.name}`, `${bytes(row.shallow_bytes)} in ${counted(row.count, "object")}`]),
      ]),
    ),
    section("Leaks", leaks),
    meta.out_of_memory && outOfMemory(meta.out_of_memory),
    growth,
    section("Waste", waste),
    section("Largest classes", few("Classes", byClass, classColumns(true, false), { view: "classes" })),
    section("Largest dominators", few("Objects", largest, objectColumns(false), { view: "dominators" })),
    meta.heap && section("Source", source(meta.heap)),
  );
}

/** Returns a place for what takes longer. */
export function later(words: string, content: Promise<Node>, signal: AbortSignal): HTMLElement {
  const place = h("div", null, h("p", { class: "soft" }, words));
  content.then(
    (made) => fill(place, made),
    (error: unknown) => {
      if (!signal.aborted) fill(place, String(error));
    },
  );
  return place;
}

/** Meaning of the models of shallow sizes. */
const SIZES = {
  dump: "as in the dump: fields and elements, without array headers",
  mat: "as in Eclipse MAT: with headers and alignment",
  art: "as in ART: with headers and alignment",
  hotspot: "as in HotSpot (jmap -histo)",
};

function source(heap: HeapFacts): HTMLElement {
  const isHprof = heap.source === "hprof";
  return facts([
    ["Dump", name(heap.path)],
    ["Label", heap.label !== null && name(heap.label)],
    ["Process", heap.process !== null && name(heap.pid === null ? heap.process : `${heap.process} (${heap.pid})`)],
    ["Time", heap.time ?? false],
    ["Format", isHprof ? name(`HPROF, ${heap.version ?? ""}`) : "heap graph of android.java_hprof"],
    ["Sizes", isHprof ? SIZES[heap.sizes] : "as the runtime reports them"],
    ["Reason", heap.reason !== null && name(heap.reason)],
    ["Not followed", heap.excluded.length > 0 && `${heap.excluded.join(", ")} references`],
  ]);
}

function outOfMemory(error: OutOfMemory): HTMLElement {
  return section(
    "OutOfMemoryError",
    h("p", null, `The app could not allocate ${bytes(error.allocation_bytes)}: ${bytes(error.free_bytes)} were free, and ${bytes(error.free_until_oom_bytes)} until the limit.`),
    h("p", null, name(error.message)),
    h("ol", { class: "path" }, ...error.stack.map((frame) => h("li", null, h("code", null, name(frame))))),
  );
}

/** Returns the first rows of a list, with a link to all. */
function few<Row>(label: string, answer: Table<Row>, columns: ColumnOf<Row>[], place: Place): HTMLElement {
  const part = { label, noun: "row", place, sort: "", columns, empty: "The heap has no reachable objects." };
  const rows = table({ ...part, rows: answer.rows, total: answer.rows.length });
  return h("div", null, rows, answer.total > answer.rows.length && h("p", null, h("a", { href: encode(place) }, `All ${thousands(answer.total)}`)));
}

async function classes(place: Place, _meta: Meta, signal: AbortSignal): Promise<HTMLElement> {
  const sort = place.sort ?? "retained";
  const by = place.by ?? "class";
  const load = (offset: number, limit: number): Promise<Table<ClassRow>> =>
    ask("classes", { by, sort, reverse: place.reverse, filter: place.filter, offset, limit }, signal);
  const answer = await load(startOf(place), BLOCK);
  const groups = Object.entries(GROUPS).map(([key, title]) =>
    h("a", { href: encode({ ...place, by: key, offset: 0 }), "aria-current": key === by ? "true" : null }, title),
  );
  const rows = grid<ClassRow>({
    label: "Classes",
    noun: "row",
    place,
    sort,
    ...answer,
    empty: place.filter ? "No name contains this text." : "The heap has no reachable objects.",
    columns: classColumns(by === "class", true),
    load: async (offset, limit) => (await load(offset, limit)).rows,
  });
  return h("div", null, h("nav", { class: "choices", "aria-label": "Rows" }, ...groups), rows);
}

function classColumns(isClass: boolean, sorts: boolean): ColumnOf<ClassRow>[] {
  const by = (sort: string): { sort?: string } => (sorts ? { sort } : {});
  return [
    { title: "Name", ...by("name"), cell: (row) => (isClass ? h("a", { href: encode({ view: "objects", class: row.name }) }, name(row.name)) : name(row.name)) },
    { title: "Count", numeric: true, ...by("count"), cell: (row) => thousands(row.count) },
    { title: "Shallow", numeric: true, ...by("shallow"), hint: "Bytes of the objects themselves", cell: (row) => size(row.shallow_bytes) },
    { title: "Native", numeric: true, ...by("native"), hint: "Native bytes that the objects own", cell: (row) => size(row.native_bytes) },
    { title: "Retained", numeric: true, ...by("retained"), hint: "Bytes that would be freed with them", cell: (row) => retained(row.retained) },
  ];
}

async function objects(place: Place, _meta: Meta, signal: AbortSignal): Promise<HTMLElement> {
  // A text is searched for, where a class has a list.
  if (place.filter && !place.class) return search("objects", place, signal);
  const list = await objectList({ class: place.class }, place, signal);
  const held = place.class && answers("holders", { class: place.class }) ? holderTree(place.class, signal) : null;
  return h("div", null, h("h2", null, place.class ? name(place.class) : "All objects"), held, list);
}

/** Returns a list of objects, all of which can be scrolled to. */
async function objectList(list: { class?: string | undefined; dominated?: string; top?: boolean }, place: Place, signal: AbortSignal): Promise<HTMLElement> {
  const sort = place.sort ?? "retained";
  const load = (offset: number, limit: number): Promise<Table<ObjectRow>> => ask("objects", { ...list, sort, offset, limit }, signal);
  const answer = await load(startOf(place), BLOCK);
  return grid<ObjectRow>({
    label: "Objects",
    noun: "object",
    place,
    sort,
    ...answer,
    empty: "No reachable objects.",
    columns: objectColumns(true),
    load: async (offset, limit) => (await load(offset, limit)).rows,
  });
}

async function dominators(place: Place, _meta: Meta, signal: AbortSignal): Promise<HTMLElement> {
  const list = place.id ? { dominated: place.id } : { top: true };
  const [objects, map, facts] = await Promise.all([
    objectList(list, place, signal),
    // A page that is a file has only that of the whole heap.
    answers("treemap", { id: place.id }) ? ask<{ cells: Cell[] }>("treemap", { id: place.id }, signal) : { cells: [] },
    place.id ? ask<ObjectFacts>("object", { id: place.id }, signal) : null,
  ]);
  const width = Math.min(1400, room());
  return h(
    "div",
    null,
    facts ? trail(facts) : h("h2", null, "Objects that no other object dominates"),
    map.cells.length > 0 && treemap(map.cells, width, 360),
    objects,
  );
}

/** Links to the dominators of an object, from the top. */
function trail(facts: ObjectFacts): HTMLElement {
  const steps = [...facts.dominators].reverse();
  const left = facts.depth - steps.length;
  return h(
    "nav",
    { class: "trail", "aria-label": "Dominators" },
    h("a", { href: encode({ view: "dominators" }) }, "Heap"),
    left > 0 && h("span", { class: "soft" }, ` … ${counted(left, "dominator")} … `),
    ...steps.map((step) => h("a", { href: encode({ view: "dominators", id: step.id }) }, name(step.name))),
    objectLink(facts),
  );
}

async function object(place: Place, meta: Meta, signal: AbortSignal): Promise<HTMLElement> {
  const id = place.id ?? "";
  const offset = place.offset ?? 0;
  const [of, fields, referrers, path] = await Promise.all([
    ask<ObjectFacts>("object", { id }, signal),
    ask<Table<FieldRow>>("fields", { id, offset, limit: PAGE_ROWS }, signal),
    ask<Table<ReferrerRow>>("referrers", { id, limit: PAGE_ROWS }, signal),
    ask<Path>("path", { id }, signal),
  ]);
  const whole = meta.reachable ? total(meta.reachable) : 0;
  const kind = of.length === null ? "Fields" : "Elements";
  return h(
    "div",
    null,
    h("h2", null, name(of.name), " ", h("code", null, of.id), of.root && h("span", { class: "tag" }, `GC root: ${of.root}`), " ", verdictTag(of.verdict)),
    of.verdict.reason !== "" && h("p", null, sentence(of.verdict.reason)),
    of.text !== undefined && h("blockquote", null, name(of.text)),
    of.bitmap && h("figure", { class: "picture" }, picture(of.id, of.bitmap, meta, WHOLE), h("figcaption", null, ...pixelFacts(of.id, of.bitmap))),
    h(
      "div",
      { class: "columns" },
      section(
        "Object",
        facts([
          ["Shallow", size(of.shallow_bytes)],
          ["Native", size(of.native_bytes)],
          ["Retained", of.retained ? h("span", null, retained(of.retained), ` (${percent(total(of.retained), whole)} of the heap)`) : retained(null)],
          ["Class", h("a", { href: encode({ view: "objects", class: of.name }) }, "all its objects")],
          ["Superclasses", h("span", null, ...of.superclasses.map((each) => h("div", null, name(each))))],
          ["Dominated by", of.dominators[0] ? objectLink(of.dominators[0]) : "nothing"],
          ["Dominates", h("a", { href: encode({ view: "dominators", id: of.id }) }, of.retained ? counted(of.retained.count - 1, "object") : "nothing")],
          ["Largest part", (of.retained?.count ?? 0) > 1 && !kept() && bigDrop(of.id, signal)],
          ["Allocated at", of.allocated_at.length > 0 && h("span", null, ...of.allocated_at.map((frame) => h("div", null, name(frame))))],
        ]),
      ),
      section(pathTitle(path), pathList(path)),
    ),
    section(
      kind,
      table<FieldRow>({
        label: kind,
        noun: of.length === null ? "field" : "element",
        place,
        sort: "",
        ...fields,
        empty: meta.contents ? "None." : "None, or hidden.",
        columns: [
          { title: "Name", cell: (row) => h("span", null, row.is_static && h("span", { class: "soft" }, "static "), name(row.name ?? "?")) },
          { title: "Value", cell: (row) => (row.object ? objectLink(row.object) : name(row.value ?? "")) },
          { title: "Type", cell: (row) => name(row.type_name ?? "") },
          { title: "Declared in", cell: (row) => name(row.declared_in ?? "") },
          { title: "Retained", numeric: true, cell: (row) => (row.object ? retained(row.object.retained) : "") },
        ],
      }),
    ),
    section(
      `Referrers (${thousands(referrers.total + (referrers.left_out ?? 0))})`,
      table<ReferrerRow>({
        label: "Referrers",
        noun: "object",
        place: { view: "object", id: of.id },
        sort: "",
        rows: referrers.rows,
        left_out: referrers.left_out ?? 0,
        // Without links to other pages: those are the pages of the fields.
        total: referrers.rows.length,
        empty: "No object refers to it.",
        columns: [{ title: "By", cell: (row) => h("code", null, name(row.reference)) }, ...objectColumns<ReferrerRow>(false)],
      }),
    ),
  );
}

function pathTitle(path: Path): string {
  if (path.steps.length === 0) return "Path: unreachable";
  return `Shortest path from a GC root (${counted(path.length, "step")})`;
}

function pathList(path: Path): HTMLElement {
  if (path.steps.length === 0) return h("p", { class: "soft" }, "No GC root reaches the object. It is waiting for collection.");
  const list = h("ol", { class: "path" });
  put(list, h("li", { class: "soft" }, path.root ?? "GC root"));
  // Between the last object in use and the first leak, one reference is to blame.
  const leaking = path.steps.findIndex((step) => step.verdict.status === "leaking");
  const before = path.steps.slice(0, Math.max(leaking, 0)).map((step) => step.verdict.status);
  const inUse = before.lastIndexOf("not-leaking");
  path.steps.forEach((step, at) => {
    if (step.left_out > 0) list.append(h("li", { class: "soft" }, `… ${counted(step.left_out, "step")} …`));
    const isSuspect = leaking >= 0 && at > Math.max(inUse, 0) && at <= leaking;
    const reference = step.reference !== null && h("code", { class: isSuspect ? "suspect" : null }, name(step.reference));
    list.append(h("li", null, reference, isSuspect && h("span", { class: "off-screen" }, " (suspected)"), reference && " → ", objectLink(step), " ", verdictTag(step.verdict)));
  });
  return list;
}

/** Returns a button that opens the object where the retained bytes of an object are. */
function bigDrop(id: string, signal: AbortSignal): HTMLElement {
  const open = async (): Promise<void> => {
    const at = await ask<ObjectFacts>("drop", { id }, signal);
    if (at.id !== id) location.hash = encode({ view: "object", id: at.id });
    else made.textContent = "They are in this object and many small ones";
  };
  const made = button("Next big drop", { title: "Follows the largest dominated object as long as it retains at least half (b)", "data-key": "b", onclick: () => void open() });
  return made;
}

function section(title: string, ...content: Node[]): HTMLElement {
  return h("section", null, h("h2", null, title), ...content);
}

function facts(rows: [string, Node | string | false][]): HTMLElement {
  const list = h("dl", { class: "pairs" });
  for (const [title, value] of rows) {
    if (value !== false) put(list, h("dt", null, title), h("dd", null, value));
  }
  return list;
}
