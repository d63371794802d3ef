// Leaks and waste: what to do comes first.

import { h, name, put, sentence } from "../dom";
import { bytes, counted, thousands } from "../units";
import { answers, ask, type Duplicates, type LeakGroup, type Leaks, type RetainedBytes, type Room, type Waste } from "./api";
import { leakPath } from "./path";
import { encode, type Place } from "./place";
import { objectName, plain, section, size } from "./rows";

/** Maximum number of leaking objects of a group that are listed. */
const MAX_OBJECTS = 10;

/** Returns what to say of a heap without leaks: the absence of what could not be analyzed proves nothing. */
function noLeaks({ not_analyzed }: Leaks): HTMLElement {
  const text = not_analyzed.length > 0 ? "No leaks found in what could be analyzed." : "No leaks found: no reachable object is past the end of its lifecycle.";
  return h("p", { class: "soft" }, text);
}

function notAnalyzed(of: { not_analyzed: string[] }): HTMLElement[] {
  return of.not_analyzed.map((text) => h("p", { class: "soft" }, "Not analyzed: ", sentence(text)));
}

/** Returns all leaks of the heap. */
export async function leakView(place: Place, signal: AbortSignal): Promise<HTMLElement> {
  const leaks = await ask<Leaks>("leaks", {}, signal);
  const list = h("div", { class: "leaks" }, ...leaks.groups.map((group) => leak(group, group.signature === place.id && group.class === place.class)));
  const left = leaks.groups_total - leaks.groups.length;
  if (leaks.groups.length === 0) put(list, noLeaks(leaks));
  if (left > 0) put(list, h("p", { class: "soft" }, `${counted(left, "more group")} of leaks are not shown.`));
  put(list, ...notAnalyzed(leaks));
  return section("Leaks", list);
}

/** Returns the first leaks, with links to them in the view of all. */
export async function leakList(count: number, signal: AbortSignal): Promise<HTMLElement> {
  const leaks = await ask<Leaks>("leaks", {}, signal);
  if (leaks.groups.length === 0) return h("div", null, noLeaks(leaks), ...notAnalyzed(leaks));
  const list = h("div", { class: "leaks" }, ...leaks.groups.slice(0, count).map((group) => h("article", null, heading(group, true), facts(group))));
  if (leaks.groups_total > count) put(list, h("p", null, h("a", { href: encode({ view: "leaks" }) }, `All ${counted(leaks.groups_total, "group")} of leaks`)));
  return list;
}

/** Returns the address of a leak in the view of all. */
export function leakAddress({ signature, class: of }: { signature: string; class: string }): string {
  return encode({ view: "leaks", id: signature, class: of });
}

function heading(group: LeakGroup, hasLink: boolean): HTMLElement {
  const words = [`${group.what}: `, name(group.class)];
  return h(
    "h3",
    null,
    h("span", { class: `tag ${group.certainty === "possible" || group.library ? "" : "certain"}` }, group.certainty),
    group.library && h("span", { class: "tag" }, "not yours"),
    " ",
    ...(hasLink ? [h("a", { href: leakAddress(group) }, ...words)] : words),
  );
}

function facts(group: LeakGroup): HTMLElement {
  const retain = group.count === 1 ? "retains" : "retain";
  return h("p", null, `${counted(group.count, "leaking object")} ${retain} ${retainedText(group.retained)}. `, sentence(group.advice));
}

function retainedText(of: RetainedBytes): string {
  return `${bytes(of.bytes + of.native_bytes)} in ${counted(of.count, "object")}`;
}

function leak(group: LeakGroup, isEntry: boolean): HTMLElement {
  const library = group.library && h("p", { class: "soft" }, "Known leak of ", name(group.library.whose), ": ", name(group.library.reference));
  const listed = group.leaks.slice(0, MAX_OBJECTS);
  const hasList = group.count > listed.length && answers("objects", { class: group.class });
  const objects = h(
    "p",
    null,
    "Objects: ",
    ...listed.flatMap((each) => [h("span", { title: each.reason }, objectName(each.id, each.id)), " "]),
    group.count > listed.length && `and ${thousands(group.count - listed.length)} more. `,
    hasList && h("a", { href: encode({ view: "objects", class: group.class }) }, "All objects of the class"),
  );
  const title = heading(group, false);
  if (isEntry) {
    title.setAttribute("data-entry", "");
    title.tabIndex = -1;
  }
  return h("article", null, title, facts(group), library, leakPath(group), objects);
}

/** Returns the sums of the waste, with a link to all. */
export async function wasteSums(signal: AbortSignal): Promise<HTMLElement> {
  const waste = await ask<Waste>("waste", {}, signal);
  const sum = (rows: { wasted_bytes: number | null }[]): number => rows.reduce((sum, row) => sum + (row.wasted_bytes ?? 0), 0);
  const kinds: [string, number][] = [
    ["equal bitmaps", waste.bitmaps.wasted_bytes],
    ["equal strings", waste.strings.wasted_bytes],
    ["equal arrays", waste.arrays.wasted_bytes],
    ["mostly empty arrays", waste.sparse_array_bytes],
    ["collections", sum(waste.collections)],
    ["boxed numbers", sum(waste.boxed)],
  ];
  const found = kinds.filter(([, wasted]) => wasted > 0).sort((a, b) => b[1] - a[1]);
  return h(
    "div",
    null,
    h("p", null, h("a", { href: encode({ view: "waste" }) }, saved(waste)), found.length > 0 ? ": " : ".", found.map(([kind, wasted]) => `${kind} ${bytes(wasted)}`).join(", ")),
    ...notAnalyzed(waste),
  );
}

/** Returns how much could be saved, as a headline. */
function saved(waste: Waste): string {
  return waste.wasted_bytes > 0 ? `Up to ${bytes(waste.wasted_bytes)} could be saved` : "No waste found";
}

/** Returns the waste of the heap. */
export async function wasteView(signal: AbortSignal): Promise<HTMLElement> {
  const waste = await ask<Waste>("waste", {}, signal);
  const isWasted = (row: { wasted_bytes: number | null }): boolean => row.wasted_bytes !== 0;
  return h(
    "div",
    null,
    h("p", null, `${saved(waste)}.`),
    duplicates("Equal bitmaps", waste.bitmaps, "pixels"),
    duplicates("Equal strings", waste.strings, "characters"),
    duplicates("Equal arrays", waste.arrays, "elements"),
    rooms("Mostly empty arrays", waste.sparse_arrays, waste.sparse_array_bytes),
    plain(
      "Collections",
      ["Class", "Objects", "Empty", "Wasted"],
      waste.collections.filter(isWasted).map((row) => [name(row.class), thousands(row.count), thousands(row.empty), size(row.wasted_bytes)]),
    ),
    rooms("Oversized collections", waste.oversized_collections, null),
    plain(
      "Boxed numbers",
      ["Class", "Objects", "Bytes", "Wasted"],
      waste.boxed.filter(isWasted).map((row) => [name(row.class), thousands(row.count), size(row.bytes), row.wasted_bytes === null ? "?" : size(row.wasted_bytes)]),
      1,
      [2],
    ),
    ...notAnalyzed(waste),
  );
}

function duplicates(title: string, of: Duplicates, unit: "pixels" | "characters" | "elements"): HTMLElement | null {
  const groups = of.groups.filter((group) => group.wasted_bytes > 0);
  const rows = groups.map((group) => {
    const copies = thousands(group.count);
    // Hidden texts have none, and a file does not have the lists.
    const isListed = unit === "characters" && group.value !== "" && answers("search", { in: "strings", equal: group.example });
    return [
      h("span", { class: "object" }, objectName(group.example, group.class), group.value !== "" && h("q", null, name(group.value))),
      name(group.held_by ?? ""),
      isListed ? h("a", { href: encode({ view: "strings", id: group.example }) }, copies) : copies,
      `${thousands(group.length)} ${unit}`,
      size(group.each_bytes),
      size(group.wasted_bytes),
    ];
  });
  return limited(`${title}: ${bytes(of.wasted_bytes)} wasted`, ["One of them", "Referrer", "Copies", "Length", "Each", "Wasted"], rows, groups, of.wasted_bytes, [1, 3, 4]);
}

function rooms(title: string, of: Room[], wasted: number | null): HTMLElement | null {
  const rows = of.map((row) => [objectName(row.example, row.class), name(row.held_by ?? ""), thousands(row.count), thousands(row.used), thousands(row.capacity), size(row.wasted_bytes)]);
  return limited(wasted === null ? `${title}, a part of the collections above` : `${title}: ${bytes(wasted)} wasted`, ["One of them", "Referrer", "Objects", "Used", "Capacity", "Wasted"], rows, of, wasted, [1, 3, 4]);
}

/** Returns a table of the rows that waste most, with a note about the others. */
function limited(title: string, heads: string[], rows: (Node | string)[][], of: { wasted_bytes: number }[], wasted: number | null, minor: number[]): HTMLElement | null {
  const made = plain(title, heads, rows, 2, minor);
  const listed = of.reduce((sum, row) => sum + row.wasted_bytes, 0);
  if (made && wasted !== null && listed < wasted) put(made, h("p", { class: "soft" }, `The others waste ${bytes(wasted - listed)} and are not shown.`));
  return made;
}
