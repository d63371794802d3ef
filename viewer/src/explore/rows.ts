// Tables whose rows come from the server, one page at a time.

import { button, fill, h, name } from "../dom";
import { bytes, counted, thousands } from "../units";
import type { ObjectRow, Size, Verdict } from "./api";
import { total } from "./api";
import { encode, type Place } from "./place";

/** Number of rows of a page. */
export const PAGE_ROWS = 100;

export interface ColumnOf<Row> {
  title: string;
  hint?: string;
  numeric?: boolean;
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

/** Returns the row of the headings. */
export function head<Row>(part: { columns: ColumnOf<Row>[]; place: Place; sort: string }): HTMLElement {
  const { place, sort } = part;
  const heading = (column: ColumnOf<Row>): HTMLElement => {
    const attributes = { scope: "col", class: column.numeric ? "n" : null, title: column.hint ?? null };
    if (!column.sort) return h("th", attributes, column.title);
    const isSorted = column.sort === sort;
    const order = place.reverse ? "ascending" : "descending";
    const next: Place = { ...place, sort: column.sort, reverse: isSorted && !place.reverse, offset: 0 };
    return h("th", { ...attributes, "aria-sort": isSorted ? order : null }, h("a", { href: encode(next) }, column.title));
  };
  return h("tr", null, ...part.columns.map(heading));
}

/** Returns a table with its headings, and links to the pages before and after. */
export function table<Row>(part: Part<Row>): HTMLElement {
  const row = (each: Row): HTMLElement =>
    h("tr", null, ...part.columns.map((column) => h("td", { class: column.numeric ? "n" : null }, column.cell(each))));
  if (part.rows.length === 0) return h("p", { class: "soft" }, part.empty);
  return h(
    "div",
    { class: "paged" },
    h(
      "div",
      { class: "wide" },
      h("table", { "aria-label": part.label }, h("thead", null, head(part)), h("tbody", null, ...part.rows.map(row))),
    ),
    pager(part),
    (part.left_out ?? 0) > 0 && h("p", { class: "soft" }, `This file does not have ${thousands(part.left_out!)} more.`),
  );
}

function pager<Row>({ place, rows, total, noun, label }: Part<Row>): HTMLElement | null {
  const offset = place.offset ?? 0;
  if (total <= rows.length) return null;
  const step = (label: string, to: number, is: boolean): HTMLElement =>
    is ? h("a", { href: encode({ ...place, offset: to }) }, label) : h("span", { class: "soft", "aria-disabled": "true" }, label);
  const last = offset + rows.length;
  return h(
    "nav",
    { class: "pager", "aria-label": `Pages: ${label}` },
    h("span", null, `${thousands(offset + 1)} to ${thousands(last)} of ${counted(total, noun)}`),
    step("Previous", Math.max(0, offset - PAGE_ROWS), offset > 0),
    step("Next", last, last < total),
  );
}

/** Returns an amount of bytes with the exact number as hint. */
export function size(value: number): HTMLElement {
  return h("span", { title: `${thousands(value)} bytes` }, bytes(value));
}

/** Returns a retained size; the native part is in the hint. */
export function retained(value: Size | null): HTMLElement {
  if (!value) return h("span", { class: "soft" }, "unreachable");
  const hint = `${thousands(value.count)} objects; Java ${bytes(value.java_bytes)}, native ${bytes(value.native_bytes)}`;
  return h("span", { title: hint }, bytes(total(value)));
}

/** Returns a link to an object, with its ID and the beginning of its text. */
export function objectLink(row: ObjectRow): HTMLElement {
  return h(
    "span",
    { class: "object" },
    h("a", { href: encode({ view: "object", id: row.id }) }, name(row.name)),
    " ",
    h("code", { class: "soft" }, row.id),
    row.text !== undefined && h("q", null, name(row.text)),
  );
}

/** Returns a tag for an object that leaks or is in use; null if that is unknown. */
export function verdictTag(verdict: Verdict): HTMLElement | null {
  if (verdict.status === "unknown") return null;
  const word = verdict.status === "leaking" ? `${verdict.certainty === "confirmed" ? "" : `${verdict.certainty} `}leak` : "in use";
  return h("span", { class: `tag ${verdict.status}`, title: verdict.reason }, word);
}

/** Columns of lists of objects. */
export function objectColumns<Row extends ObjectRow>(sorts: boolean): ColumnOf<Row>[] {
  return [
    { title: "Object", cell: (row) => objectLink(row) },
    { title: "Shallow", numeric: true, hint: "Bytes of the object itself", ...(sorts ? { sort: "shallow" } : {}), cell: (row) => size(row.shallow_bytes) },
    { title: "Native", numeric: true, hint: "Native bytes that the object owns", cell: (row) => size(row.native_bytes) },
    {
      title: "Retained",
      numeric: true,
      hint: "Bytes that would be freed with the object, Java and native",
      ...(sorts ? { sort: "retained" } : {}),
      cell: (row) => retained(row.retained),
    },
  ];
}

/** Shows a button that asks again after an error. */
export function failure(root: HTMLElement, message: string, again: () => void): void {
  fill(root, h("p", { class: "failed", role: "alert" }, message), button("Try again", { onclick: again }));
}

/** Returns a table whose columns from `numeric` on are numbers; null without rows. */
export function plain(title: string, heads: string[], rows: (Node | string)[][], numeric = 1): HTMLElement | null {
  if (rows.length === 0) return null;
  const kind = (at: number): string | null => (at >= numeric ? "n" : null);
  return h(
    "section",
    { class: "paged" },
    h("h2", null, title),
    h(
      "div",
      { class: "wide", tabindex: 0, role: "region", "aria-label": title },
      h(
        "table",
        { "aria-label": title },
        h("thead", null, h("tr", null, ...heads.map((head, at) => h("th", { scope: "col", class: kind(at) }, head)))),
        h("tbody", null, ...rows.map((row) => h("tr", null, ...row.map((cell, at) => h("td", { class: kind(at) }, cell))))),
      ),
    ),
  );
}
