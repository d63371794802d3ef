// Long lists: only visible rows are in the document. Blocks of rows come from the server when they are
// scrolled into view. The place in the address has the first visible row.

import { button, fill, h, name } from "../dom";
import { counted, thousands } from "../units";
import { messageOf } from "./api";
import { decode, encode, type Place } from "./place";
import { cells, head, notInFile, type ColumnOf } from "./rows";

/** Rows of a block. */
export const BLOCK = 200;
/** Height of a row in px; the style sheet has it too. */
const ROW_HEIGHT = 28;
/** Maximum height of all rows in px: browsers do not lay out more. Beyond it, a pixel is several rows. */
const MAX_HEIGHT = 8_000_000;
/** Number of additional rows above and below the visible ones. */
const SPARE_ROWS = 6;
/** Delay from a scroll to the request of rows, in ms. */
const SETTLE_DELAY = 60;

/** List whose rows come from the server. */
export interface Listing<Row> {
  label: string;
  /** What a row is, such as `object`. */
  noun: string;
  columns: ColumnOf<Row>[];
  /** The rows of the first block, from `startOf` the place on. */
  rows: Row[];
  total: number;
  /** Number of rows that a page that is a file does not have. */
  left_out?: number;
  place: Place;
  sort: string;
  empty: string;
  /** Ends when another view replaces the list. */
  signal: AbortSignal;
  /** Returns the rows from an offset on. */
  load(offset: number, limit: number): Promise<Row[]>;
}

/** Returns the offset of the block that has the first row of a place. */
export function startOf(place: Place): number {
  return Math.floor((place.offset ?? 0) / BLOCK) * BLOCK;
}

function blockOf(row: number): number {
  return Math.floor(row / BLOCK);
}

/** Returns a list; a sentence if it is empty. */
export function grid<Row>(listing: Listing<Row>): HTMLElement {
  if (listing.total === 0) return h("p", { class: "soft" }, listing.empty);
  return h("div", null, new Grid(listing).element, notInFile(listing.left_out, listing.noun));
}

class Grid<Row> {
  readonly element: HTMLElement;
  private readonly scroller: HTMLElement;
  private readonly body = h("tbody");
  private readonly count = h("p", { class: "soft", role: "status" });
  private readonly blocks = new Map<number, Row[] | "asked">();
  /** Address without the first visible row. */
  private readonly address: string;
  /** Why blocks are missing, by block. */
  private readonly failed = new Map<number, unknown>();
  /** First visible row. */
  private first: number;
  private drawing = 0;
  private settling = 0;

  constructor(private readonly of: Listing<Row>) {
    this.address = encode({ ...of.place, offset: 0 });
    this.first = Math.min(of.place.offset ?? 0, Math.max(0, of.total - 1));
    this.blocks.set(startOf(of.place) / BLOCK, of.rows);
    const table = h(
      "table",
      { "aria-rowcount": of.total + 1 },
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
    this.settling = window.setTimeout(() => this.settled(), SETTLE_DELAY);
  }

  /** Asks for rows that are missing, and notes the place. */
  private settled(): void {
    // The address can be that of the next view, which is not drawn yet.
    if (!this.element.isConnected || encode({ ...decode(location.hash), offset: 0 }) !== this.address) return;
    this.draw(true);
    history.replaceState(history.state, "", encode({ ...this.of.place, offset: this.first < this.visible ? 0 : this.first }));
  }

  private draw(asks = this.body.childElementCount === 0): void {
    const { total } = this.of;
    const from = Math.max(0, this.first - SPARE_ROWS);
    const to = Math.min(total, this.first + this.visible + SPARE_ROWS);
    const room = this.height - (to - from) * ROW_HEIGHT;
    // Where a pixel is several rows, the rows are where the list is scrolled to.
    const above = total * ROW_HEIGHT <= MAX_HEIGHT ? from * ROW_HEIGHT : Math.min(room, Math.max(0, this.scroller.scrollTop - (this.first - from) * ROW_HEIGHT));
    const rows: Node[] = [this.gap(above)];
    for (let at = from; at < to; at++) rows.push(this.row(at, asks));
    rows.push(this.gap(room - above));
    this.replace(rows);
    const last = Math.min(total, this.first + Math.max(1, this.visible - 1));
    // No more than two blocks are visible.
    const error = this.failed.get(blockOf(from)) ?? this.failed.get(blockOf(to - 1));
    if (error !== undefined) {
      fill(this.count, h("span", { class: "failed" }, "Cannot read these rows: ", name(messageOf(error)), " "), button("Try again", { onclick: () => this.again() }));
      return;
    }
    fill(this.count, last - this.first >= total ? counted(total, this.of.noun) : `${thousands(this.first + 1)} to ${thousands(last)} of ${counted(total, this.of.noun)}`);
  }

  /** Replaces the rows. The focus stays on its row, or on the list if that is scrolled away. */
  private replace(rows: Node[]): void {
    const focused = this.body.contains(document.activeElement) ? document.activeElement : null;
    const row = focused?.closest("tr");
    const link = row ? [...row.querySelectorAll("a")].indexOf(focused as HTMLAnchorElement) : -1;
    fill(this.body, ...rows);
    if (!row) return;
    const same = this.body.querySelector(`tr[aria-rowindex="${row.getAttribute("aria-rowindex")}"]`);
    (same?.querySelectorAll("a")[link] ?? this.scroller).focus({ preventScroll: true });
  }

  private gap(height: number): HTMLElement {
    const row = h("tr", { "aria-hidden": "true" }, h("td", { colspan: this.of.columns.length, class: "gap" }));
    (row.firstElementChild as HTMLElement).style.height = `${Math.max(0, height)}px`;
    return row;
  }

  private row(at: number, asks: boolean): HTMLElement {
    const block = blockOf(at);
    const known = this.blocks.get(block);
    if (known === undefined && asks) void this.ask(block);
    const row = Array.isArray(known) ? known[at % BLOCK] : undefined;
    return h("tr", { "aria-rowindex": at + 2, class: row === undefined ? "soft" : null }, ...cells(this.of.columns, row));
  }

  private again(): void {
    this.failed.clear();
    this.draw(true);
  }

  private async ask(block: number): Promise<void> {
    this.blocks.set(block, "asked");
    try {
      this.blocks.set(block, await this.of.load(block * BLOCK, BLOCK));
      this.failed.delete(block);
    } catch (error) {
      if (this.of.signal.aborted) return;
      // Asked again by the button, or when it is scrolled into view again.
      this.blocks.delete(block);
      this.failed.set(block, error);
    }
    if (this.element.isConnected) this.draw();
  }
}
