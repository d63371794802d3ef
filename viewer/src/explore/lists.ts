// Lists of classes and of objects, and the dominator tree.

import { h, name } from "../dom";
import { counted, thousands } from "../units";
import { answers, ask, type Cell, type ClassRow, type Meta, type ObjectFacts, type ObjectRow, type Table } from "./api";
import { BLOCK, grid, startOf } from "./grid";
import { holderTree } from "./holders";
import { encode, type Place } from "./place";
import { choices, classLink, objectColumns, objectLink, retained, size, type ColumnOf } from "./rows";
import { room } from "./room";
import { search } from "./search";
import { treemap } from "./treemap";

/** Rows of the class table: title of the choice, and of the column. */
const GROUPS: Record<string, [string, string]> = {
  class: ["Classes", "Class"],
  package: ["Packages", "Package"],
  superclass: ["Superclasses", "Superclass"],
  heap: ["Heaps", "Heap"],
  loader: ["Class loaders", "Class loader"],
};
/** Maximum width of the treemap, and its height, in px. */
const MAX_MAP_WIDTH = 1400;
const MAP_HEIGHT = 360;

/** Returns the class table. */
export async function classes(place: Place, _meta: Meta, signal: AbortSignal): Promise<HTMLElement> {
  const sort = place.sort ?? "retained";
  const by = place.by ?? "class";
  const load = (offset: number, limit: number): Promise<Table<ClassRow>> =>
    ask("classes", { by, sort, reverse: place.reverse, filter: place.filter, offset, limit }, signal);
  const answer = await load(startOf(place), BLOCK);
  const groups = Object.entries(GROUPS).map(([key, [title]]): [string, Place, boolean] => [title, { ...place, by: key, offset: 0 }, key === by]);
  const rows = grid<ClassRow>({
    ...answer,
    label: "Classes",
    noun: "row",
    place,
    sort,
    empty: place.filter ? `No name contains “${place.filter}”.` : "The heap has no reachable objects.",
    columns: classColumns(by, true),
    signal,
    load: async (offset, limit) => (await load(offset, limit)).rows,
  });
  return h("div", null, choices("Rows", groups), rows);
}

/** Returns the columns of the class table. */
export function classColumns(by: string, sorts: boolean): ColumnOf<ClassRow>[] {
  const key = (sort: string): { sort?: string } => (sorts ? { sort } : {});
  return [
    { title: GROUPS[by]?.[1] ?? "Name", ...key("name"), cell: (row) => (by === "class" ? classLink(row.name) : name(row.name)) },
    { title: "Objects", numeric: true, ...key("count"), cell: (row) => thousands(row.count) },
    { title: "Shallow", numeric: true, minor: true, ...key("shallow"), hint: "Bytes of the objects themselves", cell: (row) => size(row.shallow_bytes) },
    { title: "Native", numeric: true, minor: true, ...key("native"), hint: "Native bytes that the objects own", cell: (row) => size(row.native_bytes) },
    { title: "Retained", numeric: true, ...key("retained"), hint: "Bytes that would be freed with them, Java and native", cell: (row) => retained(row.retained) },
  ];
}

/** Returns the objects of a class, or all. */
export async function objects(place: Place, _meta: Meta, signal: AbortSignal): Promise<HTMLElement> {
  // The server searches for a text, where a class has a list. A file filters the list that it has.
  const isSearch = place.filter !== undefined && !place.class;
  if (isSearch && answers("search", { in: "objects" })) return search("objects", place, signal);
  const list = await objectList(isSearch ? { filter: place.filter } : { class: place.class }, place, signal);
  const paths = place.class && answers("holders", { class: place.class }) ? holderTree(place.class, signal) : null;
  const title = isSearch ? ["Objects whose class contains “", name(place.filter ?? ""), "”"] : [place.class ? name(place.class) : "All objects"];
  return h("div", null, h("h2", null, ...title), paths, list);
}

/** Returns a list of objects, all of which can be scrolled to. */
async function objectList(list: { class?: string | undefined; filter?: string | undefined; dominated?: string; top?: boolean }, place: Place, signal: AbortSignal): Promise<HTMLElement> {
  const sort = place.sort ?? "retained";
  const empty = list.filter ? "No class of an object in this file contains this text." : list.dominated ? "It dominates no object." : "No reachable objects.";
  const load = (offset: number, limit: number): Promise<Table<ObjectRow>> => ask("objects", { ...list, sort, reverse: place.reverse, offset, limit }, signal);
  const answer = await load(startOf(place), BLOCK);
  return grid<ObjectRow>({
    ...answer,
    label: "Objects",
    noun: "object",
    place,
    sort,
    empty,
    columns: objectColumns(true),
    signal,
    load: async (offset, limit) => (await load(offset, limit)).rows,
  });
}

/** Returns the dominator tree below an object, or the whole. */
export async function dominators(place: Place, _meta: Meta, signal: AbortSignal): Promise<HTMLElement> {
  const list = place.id ? { dominated: place.id } : { top: true };
  const [objects, map, facts] = await Promise.all([
    objectList(list, place, signal),
    // A page that is a file has only that of the whole heap.
    answers("treemap", { id: place.id }) ? ask<{ cells: Cell[] }>("treemap", { id: place.id }, signal) : { cells: [] },
    place.id ? ask<ObjectFacts>("object", { id: place.id }, signal) : null,
  ]);
  return h(
    "div",
    null,
    facts ? trail(facts) : h("h2", null, "Dominator tree: an area is a retained size"),
    map.cells.length > 0 && treemap(map.cells, Math.min(MAX_MAP_WIDTH, room()), MAP_HEIGHT),
    h("h2", null, facts ? "Objects that it dominates immediately" : "Objects without a dominator"),
    objects,
  );
}

/** Returns links to the dominators of an object, from the top. */
function trail(facts: ObjectFacts): HTMLElement {
  const steps = [...facts.dominators].reverse();
  const left = facts.depth - steps.length;
  const link = (step: ObjectRow): HTMLElement => (answers("objects", { dominated: step.id }) ? h("a", { href: encode({ view: "dominators", id: step.id }) }, name(step.name)) : name(step.name));
  return h(
    "nav",
    { class: "trail", "aria-label": "Dominators" },
    h("a", { href: encode({ view: "dominators" }) }, "Heap"),
    left > 0 && h("span", { class: "soft" }, ` … ${counted(left, "dominator")} … `),
    ...steps.map(link),
    objectLink(facts),
  );
}
