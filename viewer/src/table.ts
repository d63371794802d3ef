// Tables of any length: only visible rows are in the document. Headings sort, and the keyboard moves
// between rows. A tree is a table whose rows have levels.

import { button, fill, h } from "./dom";

export interface ColumnOf<Row> {
  id: string;
  title: string;
  hint?: string;
  numeric?: boolean;
  /** Returns the content of the cell. */
  cell(row: Row): Node | string;
  /** Sort key; a column without it is not sortable. */
  sort?(row: Row): number | string;
}

export interface Level {
  level: number;
  place: number;
  of: number;
  /** null if the row does not have children. */
  expanded: boolean | null;
}

export interface TableOptions<Row> {
  label: string;
  /** Returns the level of a row; the table is then a tree. */
  level?(row: Row): Level;
  activate?(row: Row): void;
  select?(row: Row): void;
  toggle?(row: Row, open: boolean): void;
  sorted?(column: string, descending: boolean): void;
  empty?: string;
}

/** Height of a row in px. */
const ROW_HEIGHT = 26;
/** Number of additional rows above and below the visible ones. */
const SPARE_ROWS = 8;
/** Minimum rendered height in px: the table grows with its rows, up to the limit of the style sheet. */
const MIN_RENDERED_HEIGHT = 1000;
let tables = 0;

export class Table<Row> {
  readonly element: HTMLElement;
  private readonly table: HTMLTableElement;
  private readonly body: HTMLElement;
  private readonly headings = new Map<string, HTMLElement>();
  private readonly prefix = `t${tables++}`;
  private rows: Row[] = [];
  private active = -1;
  private pending = 0;
  sortedBy: { column: string; descending: boolean } | null = null;

  constructor(
    private readonly columns: ColumnOf<Row>[],
    private readonly options: TableOptions<Row>,
  ) {
    const head = h("tr", { "aria-rowindex": 1 });
    for (const column of columns) {
      const sorts = column.sort && options.sorted;
      const cell = h(
        "th",
        { scope: "col", class: column.numeric ? "n" : null, title: column.hint ?? null },
        sorts ? button(column.title, { onclick: () => this.sortBy(column) }) : column.title,
      );
      this.headings.set(column.id, cell);
      head.append(cell);
    }
    this.body = h("tbody");
    this.table = h(
      "table",
      { role: options.level ? "treegrid" : "grid", tabindex: 0, "aria-label": options.label },
      h("thead", null, head),
      this.body,
    );
    this.element = h("div", { class: "table-scroll" }, this.table);
    this.element.addEventListener("scroll", () => this.scheduleDraw(), { passive: true });
    new ResizeObserver(() => this.scheduleDraw()).observe(this.element);
    this.table.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => this.click(event));
    this.body.addEventListener("dblclick", () => {
      const row = this.rows[this.active];
      if (row !== undefined) this.options.activate?.(row);
    });
  }

  /** Shows rows. The active row stays active if it is still present. */
  show(rows: Row[], active: Row | null = null): void {
    const before = this.rows[this.active];
    this.rows = rows;
    this.active = rows.indexOf(active ?? before!);
    this.table.setAttribute("aria-rowcount", String(rows.length + 1));
    this.draw();
  }

  get length(): number {
    return this.rows.length;
  }

  markSort(column: string, descending: boolean): void {
    this.sortedBy = { column, descending };
    for (const [id, cell] of this.headings) {
      if (id === column) cell.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
  }

  /** Scrolls a row into view and makes it active. */
  reveal(row: Row): void {
    const at = this.rows.indexOf(row);
    if (at < 0) return;
    this.move(at);
  }

  private sortBy(column: ColumnOf<Row>): void {
    const isSame = this.sortedBy?.column === column.id;
    const descending = isSame ? !this.sortedBy!.descending : column.numeric === true;
    this.markSort(column.id, descending);
    this.options.sorted?.(column.id, descending);
  }

  private scheduleDraw(): void {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.draw();
    });
  }

  private draw(): void {
    const { scrollTop, clientHeight } = this.element;
    const first = Math.max(0, Math.floor(scrollTop / ROW_HEIGHT) - SPARE_ROWS);
    const last = Math.min(this.rows.length, Math.ceil((scrollTop + Math.max(clientHeight, MIN_RENDERED_HEIGHT)) / ROW_HEIGHT) + SPARE_ROWS);
    const rows: Node[] = [];
    if (first > 0) rows.push(this.gap(first));
    for (let i = first; i < last; i++) rows.push(this.row(i));
    if (last < this.rows.length) rows.push(this.gap(this.rows.length - last));
    if (this.rows.length === 0) {
      rows.push(h("tr", null, h("td", { colspan: this.columns.length, class: "empty" }, this.options.empty ?? "No rows.")));
    }
    fill(this.body, ...rows);
    if (this.active >= first && this.active < last) {
      this.table.setAttribute("aria-activedescendant", `${this.prefix}-${this.active}`);
    } else {
      this.table.removeAttribute("aria-activedescendant");
    }
  }

  private gap(rows: number): HTMLElement {
    const cell = h("td", { colspan: this.columns.length });
    cell.style.height = `${rows * ROW_HEIGHT}px`;
    return h("tr", { class: "gap", "aria-hidden": "true" }, cell);
  }

  private row(i: number): HTMLElement {
    const row = this.rows[i]!;
    const level = this.options.level?.(row);
    const element = h("tr", {
      id: `${this.prefix}-${i}`,
      "aria-rowindex": i + 2,
      "aria-selected": i === this.active ? "true" : "false",
      class: i % 2 ? "odd" : null,
      "data-row": i,
      "aria-level": level?.level ?? null,
      "aria-posinset": level ? level.place + 1 : null,
      "aria-setsize": level?.of ?? null,
      "aria-expanded": level && level.expanded !== null ? String(level.expanded) : null,
    });
    this.columns.forEach((column, c) => {
      const content = column.cell(row);
      const cell = h("td", { class: column.numeric ? "n" : "t" });
      if (level && c === 0) {
        const mark = h("span", { class: "twist", "aria-hidden": "true" });
        mark.textContent = level.expanded === null ? "" : level.expanded ? "▾" : "▸";
        // The indent is limited, to keep deep callstacks readable.
        mark.style.marginInlineStart = `${Math.min(level.level - 1, 30) * 12}px`;
        cell.append(mark);
      }
      cell.append(content);
      element.append(cell);
    });
    return element;
  }

  private click(event: MouseEvent): void {
    const target = event.target as Element;
    const element = target.closest<HTMLElement>("tr[data-row]");
    if (!element || target.closest("button, a")) return;
    const at = Number(element.dataset["row"]);
    const row = this.rows[at]!;
    const level = this.options.level?.(row);
    this.active = at;
    if (level && level.expanded !== null && target.closest(".twist")) this.options.toggle?.(row, !level.expanded);
    else this.options.select?.(row);
    this.draw();
  }

  private move(to: number): void {
    if (this.rows.length === 0) return;
    this.active = Math.max(0, Math.min(to, this.rows.length - 1));
    const head = this.table.tHead?.offsetHeight ?? ROW_HEIGHT;
    const top = this.active * ROW_HEIGHT;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + ROW_HEIGHT + head > scrollTop + clientHeight) this.element.scrollTop = top + ROW_HEIGHT + head - clientHeight;
    this.draw();
    this.options.select?.(this.rows[this.active]!);
  }

  private key(event: KeyboardEvent): void {
    if (event.target !== this.table || event.ctrlKey || event.metaKey || event.altKey) return;
    const row = this.rows[this.active];
    const level = row !== undefined ? this.options.level?.(row) : undefined;
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW_HEIGHT) - 2);
    const steps: Record<string, () => void> = {
      ArrowDown: () => this.move(this.active + 1),
      ArrowUp: () => this.move(this.active < 0 ? 0 : this.active - 1),
      PageDown: () => this.move(this.active + page),
      PageUp: () => this.move(this.active - page),
      Home: () => this.move(0),
      End: () => this.move(this.rows.length - 1),
      Enter: () => row !== undefined && this.options.activate?.(row),
    };
    if (level && row !== undefined) {
      steps["ArrowRight"] = () => (level.expanded === false ? this.options.toggle?.(row, true) : this.move(this.active + 1));
      steps["ArrowLeft"] = () => {
        if (level.expanded) this.options.toggle?.(row, false);
        else this.move(this.parentOf(this.active, level.level));
      };
    }
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    step();
  }

  private parentOf(at: number, level: number): number {
    for (let i = at - 1; i >= 0; i--) if (this.options.level!(this.rows[i]!).level < level) return i;
    return at;
  }
}
