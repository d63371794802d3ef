// Long lists: only visible rows are in the document. Blocks of rows come from the server when they are
// scrolled into view. The place in the address has the first visible row.

import { fill, h } from "../dom";
import { counted, thousands } from "../units";
import { encode, type Place } from "./place";
import { head, type ColumnOf } from "./rows";

/** Rows of a block. */
export const BLOCK = 200;
/** Height of a row in px; the style sheet has it too. */
const ROW_HEIGHT = 28;
/** Maximum height of all rows in px: browsers do not lay out more. Beyond it, a pixel is several rows. */
const MAX_HEIGHT = 8_000_000;
/** Number of additional rows above and below the visible ones. */
const SPARE = 6;
/** Delay from a scroll to the request of rows, in ms. */
const SETTLE = 60;

/** List whose rows come from the server. */
export interface Listing<Row> {
  label: string;
  /** What a row is, such as `object`. */
  noun: string;
  columns: ColumnOf<Row>[];
  /** The rows from the place on. */
  rows: Row[];
  total: number;
  /** Number of rows that a page that is a file does not have. */
  left_out?: number;
  place: Place;
  sort: string;
  empty: string;
  /** Returns the rows from an offset on. */
  load(offset: number, limit: number): Promise<Row[]>;
}

/** Returns the offset of the block that has the first row of a place. */
export function startOf(place: Place): number {
  return Math.floor((place.offset ?? 0) / BLOCK) * BLOCK;
}

/** Returns a list; a sentence if it is empty. */
export function grid<Row>(listing: Listing<Row>): HTMLElement {
  if (listing.total === 0) return h("p", { class: "soft" }, listing.empty);
  const left = listing.left_out ?? 0;
  return h("div", null, new Grid(listing).element, left > 0 && h("p", { class: "soft" }, `This file does not have ${thousands(left)} more.`));
}

class Grid<Row> {
  readonly element: HTMLElement;
  private readonly scroller: HTMLElement;
  private readonly body = h("tbody");
  private readonly count = h("p", { class: "soft", role: "status" });
  private readonly blocks = new Map<number, Row[] | "asked">();
  /** First visible row. */
  private first: number;
  private drawing = 0;
  private settling = 0;

  constructor(private readonly of: Listing<Row>) {
    const start = of.place.offset ?? 0;
    this.first = Math.min(start, Math.max(0, of.total - 1));
    // The rows at hand are a part of a block only if they begin one.
    if (start % BLOCK === 0 && (of.rows.length === BLOCK || start + of.rows.length === of.total)) this.blocks.set(start / BLOCK, of.rows);
    const table = h(
      "table",
      { "aria-label": of.label, "aria-rowcount": of.total + 1 },
      h("thead", null, head(of)),
      this.body,
    );
    this.scroller = h("div", { class: "grid", tabindex: 0, role: "region", "aria-label": of.label }, table);
    this.element = h("div", { class: "paged" }, this.scroller, this.count);
    this.scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
    new ResizeObserver(() => this.resized()).observe(this.scroller);
  }

  private get height(): number {
    return Math.min(this.of.total * ROW_HEIGHT, MAX_HEIGHT);
  }

  private get visible(): number {
    return Math.ceil(this.scroller.clientHeight / ROW_HEIGHT);
  }

  /** Returns the scroll position of a row. */
  private positionOf(row: number): number {
    return (row / this.of.total) * this.height;
  }

  private resized(): void {
    if (this.body.childElementCount === 0) {
      this.draw();
      this.scroller.scrollTop = this.positionOf(this.first);
    }
    this.draw();
  }

  private scrolled(): void {
    // The end of the list is at the end of the scroll bar.
    const last = this.scroller.scrollHeight - this.scroller.clientHeight;
    const isEnd = this.scroller.scrollTop >= last - 1;
    const fit = Math.max(0, this.of.total - this.visible + 2);
    this.first = isEnd ? fit : Math.min(fit, Math.floor((this.scroller.scrollTop / this.height) * this.of.total));
    if (!this.drawing) {
      this.drawing = requestAnimationFrame(() => {
        this.drawing = 0;
        this.draw();
      });
    }
    clearTimeout(this.settling);
    this.settling = window.setTimeout(() => this.settled(), SETTLE);
  }

  /** Asks for rows that are missing, and notes the place. */
  private settled(): void {
    if (!this.element.isConnected) return;
    this.draw(true);
    const { place } = this.of;
    history.replaceState(history.state, "", encode({ ...place, offset: this.first < this.visible ? 0 : this.first }));
  }

  private draw(asks = this.body.childElementCount === 0): void {
    const { total } = this.of;
    const from = Math.max(0, this.first - SPARE);
    const to = Math.min(total, this.first + this.visible + SPARE);
    const room = this.height - (to - from) * ROW_HEIGHT;
    // Where a pixel is several rows, the rows are where the list is scrolled to.
    const above = total * ROW_HEIGHT <= MAX_HEIGHT ? from * ROW_HEIGHT : Math.min(room, Math.max(0, this.scroller.scrollTop - (this.first - from) * ROW_HEIGHT));
    const rows: Node[] = [this.gap(above)];
    for (let at = from; at < to; at++) rows.push(this.row(at, asks));
    rows.push(this.gap(room - above));
    fill(this.body, ...rows);
    const last = Math.min(total, this.first + Math.max(1, this.visible - 1));
    fill(this.count, last - this.first >= total ? counted(total, this.of.noun) : `${thousands(this.first + 1)} to ${thousands(last)} of ${counted(total, this.of.noun)}`);
  }

  private gap(height: number): HTMLElement {
    const row = h("tr", { "aria-hidden": "true" }, h("td", { colspan: this.of.columns.length, class: "gap" }));
    (row.firstElementChild as HTMLElement).style.height = `${Math.max(0, height)}px`;
    return row;
  }

  private row(at: number, asks: boolean): HTMLElement {
    const block = Math.floor(at / BLOCK);
    const known = this.blocks.get(block);
    if (known === undefined && asks) void this.ask(block);
    const row = Array.isArray(known) ? known[at % BLOCK] : undefined;
    const cells = this.of.columns.map((column) => h("td", { class: column.numeric ? "n" : null }, row === undefined ? "…" : column.cell(row)));
    return h("tr", { "aria-rowindex": at + 2, class: row === undefined ? "soft" : null }, ...cells);
  }

  private async ask(block: number): Promise<void> {
    this.blocks.set(block, "asked");
    try {
      this.blocks.set(block, await this.of.load(block * BLOCK, BLOCK));
    } catch {
      // Asked again when it is scrolled into view again.
      this.blocks.delete(block);
    }
    if (this.element.isConnected) this.draw();
  }
}
