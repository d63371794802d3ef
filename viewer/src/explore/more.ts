// Lists that grow by a button, whose errors are below it.

import { button, fill, h } from "../dom";
import { counted, thousands } from "../units";
import { messageOf, type Table } from "./api";
import { cells, head, notInFile, PAGE_ROWS, wide, type ColumnOf } from "./rows";

/** Button that shows more rows; a click while it asks has no effect. */
export class MoreButton {
  readonly button = button("Show more", { onclick: () => void this.run() });
  readonly element: HTMLElement;
  private readonly error = h("p", { class: "failed", role: "alert", hidden: true });
  private isAsking = false;

  constructor(
    private readonly next: () => Promise<void>,
    private readonly signal: AbortSignal,
  ) {
    this.element = h("div", null, this.error, this.button);
  }

  /** Hides the button at the end of a list, which gets its focus. */
  setEnd(isEnd: boolean, list: HTMLElement): void {
    if (isEnd && document.activeElement === this.button) list.focus({ preventScroll: true });
    this.button.hidden = isEnd;
  }

  /** Shows more; an error is shown, and the button asks again. */
  async run(): Promise<void> {
    if (this.isAsking) return;
    this.isAsking = true;
    this.error.hidden = true;
    this.button.setAttribute("aria-disabled", "true");
    try {
      await this.next();
    } catch (error) {
      if (this.signal.aborted) return;
      fill(this.error, messageOf(error));
      this.error.hidden = false;
      this.button.hidden = false;
    } finally {
      this.isAsking = false;
      this.button.removeAttribute("aria-disabled");
    }
  }
}

/** List whose first rows are at hand. */
interface GrowingList<Row> extends Table<Row> {
  label: string;
  noun: string;
  columns: ColumnOf<Row>[];
  empty: string;
  load(offset: number, limit: number): Promise<Table<Row>>;
}

/** Returns a table that shows the next rows on request. */
export function growingTable<Row>(of: GrowingList<Row>, signal: AbortSignal): HTMLElement {
  if (of.rows.length === 0) return h("p", { class: "soft" }, of.empty);
  const body = h("tbody");
  const region = wide(of.label, head({ columns: of.columns, place: { view: "object" }, sort: "" }), body);
  const state = h("p", { class: "soft", role: "status" });
  const more = new MoreButton(async () => add((await of.load(body.childElementCount, PAGE_ROWS)).rows), signal);
  const add = (rows: Row[]): void => {
    body.append(...rows.map((row) => h("tr", null, ...cells(of.columns, row))));
    const count = body.childElementCount;
    more.setEnd(count >= of.total || rows.length === 0, region);
    state.textContent = count >= of.total ? "" : `${thousands(count)} of ${counted(of.total, of.noun)}`;
  };
  add(of.rows);
  return h("div", { class: "paged" }, region, state, more.element, notInFile(of.left_out, of.noun));
}
