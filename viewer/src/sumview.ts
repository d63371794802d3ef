// Table of functions, lines, libraries or packages with self and total values, sorted by any column and
// filtered by name.

import { button, h, name } from "./dom";
import { copyToClipboard, tsv } from "./copy";
import { libraryName, sourceLine, rawLabel, type Grouping, type Keys } from "./keys";
import { escapeInvisible } from "./names";
import type { Profile } from "./profile";
import type { Scene, Stage } from "./scene";
import { Table, type ColumnOf } from "./table";
import { bar, currentTheme } from "./treeview";
import { amount, counted, signed, thousands } from "./units";

export interface SumRow {
  key: number;
  label: string;
  library: string;
  place: string;
  self: number;
  total: number;
  selfBefore: number;
  totalBefore: number;
}

export interface SumEvents {
  by(grouping: Grouping): void;
  search(key: number, keys: Keys): void;
  say(text: string): void;
}

export class SumView {
  readonly element: HTMLElement;
  private readonly host = h("div", { class: "fill" });
  private readonly filter: HTMLInputElement;
  private readonly count = h("span", { class: "hint" });
  private readonly groupings: { grouping: Grouping; button: HTMLButtonElement }[];
  private table: Table<SumRow> | null = null;
  private rows: SumRow[] = [];
  private listed: SumRow[] = [];
  private shape = "";
  private scene: Scene | null = null;
  private sort = { column: "self", descending: true };

  constructor(
    private readonly profile: Profile,
    private readonly stage: Stage,
    private readonly events: SumEvents,
    groupings: Grouping[],
  ) {
    const titles: Record<Grouping, string> = {
      function: "Functions",
      line: "Lines",
      library: "Libraries",
      package: "Packages",
    };
    this.groupings = groupings.map((grouping) => ({
      grouping,
      button: button(titles[grouping], { onclick: () => events.by(grouping) }),
    }));
    this.filter = h("input", {
      type: "search",
      placeholder: "Filter rows",
      "aria-label": "Filter rows by name or library",
      oninput: () => this.list(),
    });
    this.element = h(
      "div",
      { class: "pane" },
      h(
        "div",
        { class: "bar" },
        groupings.length > 1
          ? h("div", { class: "segments", role: "group", "aria-label": "Rows" }, ...this.groupings.map((each) => each.button))
          : null,
        this.filter,
        this.count,
        h("span", { class: "gap" }),
        button("Copy as TSV", { onclick: () => this.copy() }),
      ),
      this.host,
    );
  }

  show(scene: Scene, grouping: Grouping): void {
    this.scene = scene;
    for (const each of this.groupings) each.button.setAttribute("aria-pressed", String(each.grouping === grouping));
    const keys = this.stage.keysBy(grouping);
    const { state } = scene;
    const after = this.stage.sumsOf(scene, grouping, state.dump, scene.measure);
    const before =
      state.base !== null && scene.baseMeasure >= 0
        ? this.stage.sumsOf(scene, grouping, state.base, scene.baseMeasure)
        : null;
    const { frames, functions } = this.profile;
    this.rows = [];
    for (let key = 0; key < keys.count; key++) {
      const row: SumRow = {
        key,
        label: "",
        library: "",
        place: "",
        self: after.self[key]!,
        total: after.total[key]!,
        selfBefore: before?.self[key] ?? 0,
        totalBefore: before?.total[key] ?? 0,
      };
      if (row.self === 0 && row.total === 0 && row.selfBefore === 0 && row.totalBefore === 0) continue;
      const frame = keys.frameOf[key]!;
      row.label = rawLabel(this.profile, keys, key);
      row.library = libraryName(this.profile, functions.library[frames.function[frame]!]!);
      row.place = grouping === "line" ? sourceLine(this.profile, frame) : "";
      this.rows.push(row);
    }
    const shape = `${grouping} ${state.base !== null} ${scene.unit}`;
    if (this.shape !== shape || !this.table) {
      this.shape = shape;
      const compared = state.base !== null;
      this.sort = { column: compared ? "selfChange" : "self", descending: true };
      this.table = this.make(grouping, compared, keys);
      this.table.markSort(this.sort.column, true);
      this.host.replaceChildren(this.table.element);
    }
    this.list();
  }

  private make(grouping: Grouping, compared: boolean, keys: Keys): Table<SumRow> {
    const unit = (): string => this.scene!.unit;
    const whole = (): number => this.scene!.shown.after.sum;
    const columns: ColumnOf<SumRow>[] = [
      {
        id: "label",
        title: { function: "Function", line: "Line", library: "Library", package: "Package" }[grouping],
        sort: (row) => row.label,
        cell: (row) => {
          const swatch = h("i", { class: "swatch", "aria-hidden": "true" });
          swatch.style.background = this.scene!.palette.color(keys, row.key, currentTheme());
          return h("span", { class: "with-swatch" }, swatch, name(row.label));
        },
      },
    ];
    if (compared) {
      columns.push(
        { id: "selfChange", title: "Self change", numeric: true, sort: (row) => row.self - row.selfBefore, cell: (row) => signed(row.self - row.selfBefore, unit()) },
        { id: "totalChange", title: "Total change", numeric: true, sort: (row) => row.total - row.totalBefore, cell: (row) => signed(row.total - row.totalBefore, unit()) },
      );
    }
    columns.push(
      { id: "self", title: "Self", hint: "Without callees", numeric: true, sort: (row) => row.self, cell: (row) => amount(row.self, unit()) },
      { id: "selfShare", title: "Self share", numeric: true, cell: (row) => bar(row.self, whole()) },
      { id: "total", title: "Total", hint: "With callees; each callstack counts once", numeric: true, sort: (row) => row.total, cell: (row) => amount(row.total, unit()) },
      { id: "totalShare", title: "Total share", numeric: true, cell: (row) => bar(row.total, whole()) },
    );
    if (grouping === "line") columns.push({ id: "place", title: "File", sort: (row) => row.place, cell: (row) => name(row.place) });
    if (grouping === "function" || grouping === "line") {
      columns.push({ id: "library", title: "Library", sort: (row) => row.library, cell: (row) => name(row.library) });
    }
    return new Table<SumRow>(columns, {
      label: `Sums by ${grouping}`,
      sorted: (column, descending) => {
        this.sort = { column, descending };
        this.list();
      },
      activate: (row) => this.events.search(row.key, keys),
      empty: "No rows match.",
    });
  }

  private list(): void {
    const wanted = this.filter.value.trim().toLowerCase();
    const rows = wanted
      ? this.rows.filter((row) => row.label.toLowerCase().includes(wanted) || row.library.toLowerCase().includes(wanted))
      : this.rows.slice();
    const value = {
      label: (row: SumRow) => row.label,
      library: (row: SumRow) => row.library,
      place: (row: SumRow) => row.place,
      self: (row: SumRow) => row.self,
      total: (row: SumRow) => row.total,
      selfChange: (row: SumRow) => row.self - row.selfBefore,
      totalChange: (row: SumRow) => row.total - row.totalBefore,
    }[this.sort.column] as (row: SumRow) => number | string;
    const sign = this.sort.descending ? -1 : 1;
    rows.sort((a, b) => {
      const left = value(a);
      const right = value(b);
      return (left < right ? -sign : left > right ? sign : 0) || b.total - a.total || (a.label < b.label ? -1 : 1);
    });
    this.listed = rows;
    this.table?.show(rows);
    this.count.textContent = wanted ? `${thousands(rows.length)} of ${counted(this.rows.length, "row")}` : counted(rows.length, "row");
  }

  private async copy(): Promise<void> {
    const compared = this.scene?.state.base !== null;
    const head = ["name", "library", "self", "total", ...(compared ? ["self_before", "total_before"] : [])];
    const text = tsv(
      head,
      this.listed.map((row) => [
        escapeInvisible(row.label),
        escapeInvisible(row.library),
        row.self,
        row.total,
        ...(compared ? [row.selfBefore, row.totalBefore] : []),
      ]),
    );
    this.events.say((await copyToClipboard(text)) ? `${counted(this.listed.length, "row")} copied` : "Cannot copy: the browser denied access to the clipboard");
  }
}
