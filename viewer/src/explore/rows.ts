// Tables whose rows come from the server, one page at a time.

import { button, fill, h, name } from "../dom";
import { bytes, counted, thousands } from "../units";
import { answers, ApiError, kept, messageOf, total, type ObjectRow, type Size, type Verdict } from "./api";
import { encode, type Place } from "./place";

/** Number of rows of a page. */
export const PAGE_ROWS = 100;
/** Attribute with the key of a link that keeps the focus when its view is drawn again. */
export const KEEP = "data-keep";

export interface ColumnOf<Row> {
  title: string;
  hint?: string;
  numeric?: boolean;
  /** Whether a narrow page does not have it. */
  minor?: boolean;
  /** Sort key of the server. */
  sort?: string;
  cell(row: Row): Node | string;
}

/** Part of a table, with its place in the address. */
export interface Part<Row> {
  label: string;
  columns: ColumnOf<Row>[];
  rows: Row[];
  total: number;
  /** What a row is, such as `object`. */
  noun: string;
  place: Place;
  sort: string;
  empty: string;
  /** Number of rows that a page that is a file does not have. */
  left_out?: number;
}

interface Heads<Row> {
  columns: ColumnOf<Row>[];
  place: Place;
  sort: string;
  left_out?: number;
}

/** Returns the row of the headings. */
export function head<Row>({ columns, place, sort, left_out }: Heads<Row>): HTMLElement {
  // A file has one order of a list of which it does not have all.
  const isWhole = (left_out ?? 0) === 0;
  const heading = (column: ColumnOf<Row>): HTMLElement => {
    const attributes = { scope: "col", class: kindOf(column), title: column.hint ?? null };
    if (!column.sort) return h("th", attributes, column.title);
    const isSorted = column.sort === sort;
    const isAscending = (column.sort === "name") !== (place.reverse === true);
    const next: Place = { ...place, sort: column.sort, reverse: isSorted && !place.reverse, offset: 0 };
    const title = isWhole ? h("a", { href: encode(next), [KEEP]: `sort ${column.sort}` }, column.title) : column.title;
    return h("th", { ...attributes, "aria-sort": isSorted ? (isAscending ? "ascending" : "descending") : null }, title);
  };
  return h("tr", null, ...columns.map(heading));
}

function kindOf<Row>(column: ColumnOf<Row>): string | null {
  return [column.numeric && "n", column.minor && "minor"].filter(Boolean).join(" ") || null;
}

/** Returns the cells of a row; without it, of one that is not there yet. */
export function cells<Row>(columns: ColumnOf<Row>[], row: Row | undefined): HTMLElement[] {
  return columns.map((column) => h("td", { class: kindOf(column) }, row === undefined ? "…" : column.cell(row)));
}

/** Returns a table that can be scrolled sideways. */
export function wide(label: string, heading: HTMLElement, body: HTMLElement): HTMLElement {
  return h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": label }, h("table", null, h("thead", null, heading), body));
}

/** Returns a table with its headings, and links to the pages before and after. */
export function table<Row>(part: Part<Row>): HTMLElement {
  if (part.rows.length === 0) return h("p", { class: "soft" }, part.empty);
  const rows = part.rows.map((row) => h("tr", null, ...cells(part.columns, row)));
  return h("div", { class: "paged" }, wide(part.label, head(part), h("tbody", null, ...rows)), pager(part), notInFile(part.left_out, part.noun));
}

/** Returns a note about rows that a page that is a file does not have; null if it has all. */
export function notInFile(count: number | undefined, noun: string): HTMLElement | null {
  return count ? h("p", { class: "soft" }, `This file does not have ${counted(count, `more ${noun}`)}.`) : null;
}

function pager<Row>({ place, rows, total, noun, label }: Part<Row>): HTMLElement | null {
  const offset = place.offset ?? 0;
  if (total <= rows.length) return null;
  const step = (label: string, to: number, is: boolean): HTMLElement =>
    is ? h("a", { href: encode({ ...place, offset: to }), [KEEP]: label }, label) : h("span", { class: "soft", "aria-disabled": "true" }, label);
  const last = offset + rows.length;
  return h(
    "nav",
    { class: "pager", "aria-label": `Pages: ${label}` },
    h("span", null, `${thousands(offset + 1)} to ${thousands(last)} of ${counted(total, noun)}`),
    step("Previous", Math.max(0, offset - PAGE_ROWS), offset > 0),
    step("Next", last, last < total),
  );
}

/** Returns links of which one is chosen. */
export function choices(label: string, links: [title: string, place: Place, isChosen: boolean][]): HTMLElement {
  const link = ([title, place, isChosen]: [string, Place, boolean]): HTMLElement => h("a", { href: encode(place), [KEEP]: title, "aria-current": isChosen ? "true" : null }, title);
  return h("nav", { class: "choices", "aria-label": label }, ...links.map(link));
}

/** Returns an amount of bytes with the exact number as hint. */
export function size(value: number): HTMLElement {
  return h("span", { title: `${thousands(value)} bytes` }, bytes(value));
}

/** Returns a retained size; the native part is in the hint. */
export function retained(value: Size | null): HTMLElement {
  if (!value) return h("span", { class: "soft" }, "unreachable");
  const hint = `${counted(value.count, "object")}; Java ${bytes(value.java_bytes)}, native ${bytes(value.native_bytes)}`;
  return h("span", { title: hint }, bytes(total(value)));
}

/** Returns the name of an object, with a link if the page has the object. */
export function objectName(id: string, text: string): HTMLElement {
  return answers("object", { id }) ? h("a", { href: encode({ view: "object", id }) }, name(text)) : name(text);
}

/** Returns a link to an object, with its ID and the beginning of its text. */
export function objectLink(row: ObjectRow): HTMLElement {
  return h("span", { class: "object" }, objectName(row.id, row.name), " ", h("code", { class: "soft" }, row.id), row.text !== undefined && h("q", null, name(row.text)));
}

/** Returns the name of a class, with a link to its objects if the page has the list. */
export function classLink(of: string): HTMLElement {
  // A class is an object as well, of the class java.lang.Class.
  const list = /^class |^java\.lang\.Class</.test(of) ? "java.lang.Class" : of;
  return answers("objects", { class: list }) ? h("a", { href: encode({ view: "objects", class: list }) }, name(of)) : name(of);
}

/** Returns a tag for an object that leaks or is in use; null if that is unknown. */
export function verdictTag({ status, certainty, reason }: Verdict): HTMLElement | null {
  if (status === "unknown") return null;
  const word = status === "leaking" ? `${certainty === "confirmed" ? "" : `${certainty} `}leaking` : "in use";
  return h("span", { class: `tag ${status}`, title: reason }, word);
}

/** Columns of lists of objects. */
export function objectColumns<Row extends ObjectRow>(sorts: boolean): ColumnOf<Row>[] {
  return [
    { title: "Object", cell: (row) => objectLink(row) },
    { title: "Shallow", numeric: true, minor: true, hint: "Bytes of the object itself", ...(sorts ? { sort: "shallow" } : {}), cell: (row) => size(row.shallow_bytes) },
    { title: "Native", numeric: true, minor: true, hint: "Native bytes that the object owns", cell: (row) => size(row.native_bytes) },
    {
      title: "Retained",
      numeric: true,
      hint: "Bytes that would be freed with the object, Java and native",
      ...(sorts ? { sort: "retained" } : {}),
      cell: (row) => retained(row.retained),
    },
  ];
}

/** Shows an error, with a button that asks again if that can help. */
export function failure(root: HTMLElement, error: unknown, again: () => void): void {
  const isFinal = kept() !== null || (error instanceof ApiError && error.isFinal);
  fill(root, h("p", { class: "failed", role: "alert" }, name(messageOf(error))), !isFinal && button("Try again", { onclick: again }));
}

/** Returns a table whose columns from `numeric` on are numbers; null without rows. Narrow pages do not have
 * the columns of `minor`. */
export function plain(title: string, heads: string[], rows: (Node | string)[][], numeric = 1, minor: number[] = []): HTMLElement | null {
  if (rows.length === 0) return null;
  const kind = (at: number): string | null => [at >= numeric && "n", minor.includes(at) && "minor"].filter(Boolean).join(" ") || null;
  const body = rows.map((row) => h("tr", null, ...row.map((cell, at) => h("td", { class: kind(at) }, cell))));
  return h("section", { class: "paged" }, h("h2", null, title), wide(title, h("tr", null, ...heads.map((head, at) => h("th", { scope: "col", class: kind(at) }, head))), h("tbody", null, ...body)));
}

/** Returns a part of a view with a heading. */
export function section(title: string, ...content: (Node | null)[]): HTMLElement {
  return h("section", null, h("h2", null, title), ...content);
}
