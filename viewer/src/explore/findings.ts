// Leaks and waste: what to do comes first.

import { h, name, put, sentence } from "../dom";
import { bytes, counted, thousands } from "../units";
import { ask, type Duplicates, type KeptBytes, type LeakGroup, type LeakStep, type Leaks, type Room, type Waste } from "./api";
import { encode } from "./place";
import { plain, size } from "./rows";

/** Number of leaking objects of a group that are listed. */
const FEW = 10;

/** Returns all leaks of the heap, or the first ones with a link to all. */
export async function leakList(most: number, signal: AbortSignal): Promise<HTMLElement> {
  const leaks = await ask<Leaks>("leaks", {}, signal);
  const list = h("div", { class: "leaks" });
  if (leaks.groups.length === 0) put(list, h("p", { class: "soft" }, "No object that should be gone is reachable, as far as the rules know."));
  for (const group of leaks.groups.slice(0, most)) put(list, leak(group, most > FEW));
  if (leaks.groups_total > most) put(list, h("p", null, h("a", { href: encode({ view: "leaks" }) }, `All ${counted(leaks.groups_total, "group")} of leaks`)));
  if (most > FEW) put(list, ...leaks.not_analyzed.map((text) => h("p", { class: "soft" }, sentence(text))));
  return list;
}

function kept(of: KeptBytes): string {
  return `${bytes(of.bytes + of.native_bytes)} in ${counted(of.count, "object")}`;
}

function leak(group: LeakGroup, isWhole: boolean): HTMLElement {
  const head = h(
    "h3",
    null,
    h("span", { class: `tag ${group.certainty === "possible" ? "" : "certain"}` }, group.certainty),
    " ",
    group.what,
    ": ",
    name(group.class),
  );
  const facts = h("p", null, `${counted(group.count, "object")}, ${kept(group.retained)} retained. `, sentence(group.advice));
  const library = group.library && h("p", { class: "soft" }, "Known leak of Android: ", name(group.library.reference), ". ", group.library.what);
  if (!isWhole) return h("article", null, head, facts);
  const path = h("ol", { class: "path" }, h("li", { class: "soft" }, name(group.root)), ...group.path.map(step));
  const objects = h(
    "p",
    null,
    "Objects: ",
    ...group.leaks.slice(0, FEW).flatMap((each) => [h("a", { href: encode({ view: "object", id: each.id }), title: each.reason }, each.id), " "]),
    group.count > FEW && h("a", { href: encode({ view: "objects", class: group.class }) }, `all objects of the class`),
  );
  return h("article", null, head, facts, library, path, objects);
}

function step(of: LeakStep): HTMLElement {
  const reference = of.repeated?.text ?? of.reference;
  return h(
    "li",
    null,
    of.left_out ? h("span", { class: "soft" }, `… ${counted(of.left_out, "step")} … `) : null,
    h("a", { href: encode({ view: "object", id: of.id }) }, name(of.class)),
    of.status !== "unknown" && h("span", { class: `tag ${of.status}`, title: of.reason }, of.status === "leaking" ? "leaking" : "in use"),
    reference !== null && h("span", { class: of.suspect ? "suspect" : null }, " → ", name(reference)),
    of.suspect && h("span", { class: "off-screen" }, " (suspected)"),
  );
}

/** Returns the sums of the waste, with a link to all. */
export async function wasteSums(signal: AbortSignal): Promise<HTMLElement> {
  const waste = await ask<Waste>("waste", {}, signal);
  const sum = (rows: { wasted_bytes: number | null }[]): number => rows.reduce((sum, row) => sum + (row.wasted_bytes ?? 0), 0);
  const kinds: [string, number][] = [
    ["equal bitmaps", waste.bitmaps.wasted_bytes],
    ["equal strings", waste.strings.wasted_bytes],
    ["equal arrays", waste.arrays.wasted_bytes],
    ["collections", sum(waste.collections)],
    ["boxed numbers", sum(waste.boxed)],
  ];
  const found = kinds.filter(([, wasted]) => wasted > 0).sort((a, b) => b[1] - a[1]);
  return h(
    "div",
    null,
    h("p", null, h("a", { href: encode({ view: "waste" }) }, `Up to ${bytes(waste.wasted_bytes)} could be saved`), found.length > 0 ? ": " : ".", found.map(([kind, wasted]) => `${kind} ${bytes(wasted)}`).join(", ")),
    ...waste.not_analyzed.map((text) => h("p", { class: "soft" }, sentence(text))),
  );
}

/** Returns the waste of the heap. */
export async function wasteView(signal: AbortSignal): Promise<HTMLElement> {
  const waste = await ask<Waste>("waste", {}, signal);
  return h(
    "div",
    null,
    h("p", null, `Up to ${bytes(waste.wasted_bytes)} could be saved.`),
    duplicates("Equal bitmaps", waste.bitmaps, "pixels"),
    duplicates("Equal strings", waste.strings, "characters"),
    duplicates("Equal arrays", waste.arrays, "elements"),
    rooms("Oversized collections", waste.oversized_collections),
    rooms("Mostly empty arrays", waste.sparse_arrays),
    plain(
      "Collections",
      ["Class", "Count", "Empty", "Wasted"],
      waste.collections.map((row) => [name(row.class), thousands(row.count), thousands(row.empty), size(row.wasted_bytes)]),
    ),
    plain(
      "Boxed numbers",
      ["Class", "Count", "Bytes", "Wasted"],
      waste.boxed.map((row) => [name(row.class), thousands(row.count), size(row.bytes), row.wasted_bytes === null ? "?" : size(row.wasted_bytes)]),
    ),
    ...waste.not_analyzed.map((text) => h("p", { class: "soft" }, sentence(text))),
  );
}

function duplicates(title: string, of: Duplicates, unit: string): HTMLElement | null {
  const rows = of.groups.map((group) => [
    h("span", { class: "object" }, h("a", { href: encode({ view: "object", id: group.example }) }, name(group.class)), group.value !== "" && h("q", null, name(group.value))),
    name(group.held_by ?? ""),
    thousands(group.count),
    `${thousands(group.length)} ${unit}`,
    size(group.each_bytes),
    size(group.wasted_bytes),
  ]);
  return plain(`${title}: ${bytes(of.wasted_bytes)} wasted`, ["One of them", "Held by", "Copies", "Length", "Each", "Wasted"], rows, 2);
}

function rooms(title: string, of: Room[]): HTMLElement | null {
  const rows = of.map((row) => [
    h("a", { href: encode({ view: "object", id: row.id }) }, name(row.class)),
    name(row.held_by ?? ""),
    thousands(row.used),
    thousands(row.capacity),
    size(row.wasted_bytes),
  ]);
  return plain(title, ["Object", "Held by", "Used", "Capacity", "Wasted"], rows, 2);
}
