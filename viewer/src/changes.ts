// Changes between two dumps by function: new, gone, grew or shrank, each with its confidence interval.
// Changes within sampling error are marked.

import { testChanges } from "./chance";
import { fill, h, name, sentence } from "./dom";
import { change, changed, interval } from "./estimate";
import { libraryName } from "./keys";
import type { Range } from "./noise";
import type { Profile } from "./profile";
import type { Scene, Stage } from "./scene";
import { selfByKey } from "./functions";
import { measureOf } from "./profile";
import { Table } from "./table";
import type { Column } from "./values";
import { legend, VERDICTS } from "./summary";
import { amount, counted, signed } from "./units";

export interface ChangeRow {
  key: number;
  label: string;
  library: string;
  before: number;
  after: number;
  kind: "new" | "gone" | "grew" | "shrank";
  range: Range | null;
  /** Whether the change exceeds sampling error, tested together with all functions; null if unknown. */
  certain: boolean | null;
}

const KINDS = ["all", "new", "gone", "grew", "shrank"] as const;
type KindFilter = (typeof KINDS)[number];

/** Returns whether a row is listed under a kind. Changes within sampling error are listed only under all. */
const isOf = (row: ChangeRow, kind: KindFilter): boolean => kind === "all" || (row.kind === kind && row.certain !== false);

export class ChangesView {
  readonly element: HTMLElement;
  private readonly host = h("div", { class: "fill" });
  private readonly total = h("p", { class: "hint" });
  private readonly verdicts = h("div");
  private readonly buttons = new Map<KindFilter, HTMLButtonElement>();
  private chosen: KindFilter = "all";
  private rows: ChangeRow[] = [];
  private table: Table<ChangeRow> | null = null;
  private sort = { column: "change", descending: true };
  private hideWithinError: HTMLInputElement;
  private scene: Scene | null = null;

  constructor(
    private readonly profile: Profile,
    private readonly stage: Stage,
    private readonly search: (key: number) => void,
  ) {
    const titles: Record<KindFilter, string> = { all: "All", new: "New", gone: "Gone", grew: "Grew", shrank: "Shrank" };
    for (const kind of KINDS) {
      this.buttons.set(
        kind,
        h("button", { type: "button", onclick: () => { this.chosen = kind; this.list(); } }, titles[kind]),
      );
    }
    this.hideWithinError = h("input", { type: "checkbox", onchange: () => this.list() });
    this.element = h(
      "div",
      { class: "pane" },
      h(
        "div",
        { class: "bar" },
        h("div", { class: "segments", role: "group", "aria-label": "Kind of change" }, ...this.buttons.values()),
        h("label", { class: "check" }, this.hideWithinError, "Hide changes within sampling error"),
      ),
      this.total,
      this.verdicts,
      this.host,
    );
  }

  /** Shows the verdicts of `heaptap leaks` for the series, each with its sentence. */
  private showVerdicts(series: number): void {
    const growth = this.profile.header.growth?.find((each) => each.series === series);
    const kinds = this.scene?.state.base === null ? [] : ["grew", "within-sampling-error"];
    if (!growth || growth.sites.length === 0) {
      fill(this.verdicts, legend(kinds));
      return;
    }
    const grows = growth.sites.filter((site) => site.verdict === "confirmed").length;
    fill(
      this.verdicts,
      h(
        "details",
        { class: "card" },
        h("summary", null, `Confirmed leaks: ${grows} of ${counted(growth.sites.length, "callsite")}, over ${counted(growth.rounds, "iteration")}`),
        h(
          "ul",
          { class: "verdicts" },
          ...growth.sites.slice(0, 50).map((site) =>
            h("li", null, h("span", { class: `tag ${site.verdict}` }, VERDICTS[site.verdict] ?? site.verdict), " ", name(site.function), h("p", { class: "soft" }, sentence(site.says))),
          ),
        ),
      ),
      legend([...growth.sites.map((site) => site.verdict), ...kinds]),
    );
  }

  show(scene: Scene): void {
    this.scene = scene;
    const { state } = scene;
    this.showVerdicts(this.profile.dumps[state.dump]!.facts.series);
    if (state.base === null) {
      fill(this.host, h("p", { class: "empty" }, "No dump to compare with. Drag from one dump to another on the timeline, or select a dump under Compare with."));
      this.table = null;
      this.rows = [];
      this.total.textContent = "";
      this.list();
      return;
    }
    this.rows = changeRows(this.profile, this.stage, scene);
    this.table = this.make(scene);
    fill(this.host, this.table.element);
    const total = this.stage.figure(scene, scene.measure, (column) => column.sum);
    const { times, each } = this.divisor();
    const figure = total.range ? change(total.range, scene.unit, times) : signed((total.after - total.before) / times, scene.unit);
    this.total.textContent = `In total: ${figure}${each}. Self values by function; 95% confidence intervals, sampling error only.`;
    this.list();
  }

  /** Returns the divisor of the changes, and the words that follow a divided one. */
  private divisor(): { times: number; each: string } {
    const per = this.profile.header.diff?.per;
    return per ? { times: per.times, each: ` per ${per.word}` } : { times: 1, each: "" };
  }

  private make(scene: Scene): Table<ChangeRow> {
    const { times, each } = this.divisor();
    const unit = scene.unit;
    const table = new Table<ChangeRow>(
      [
        { id: "label", title: "Function", sort: () => 0, cell: (row) => name(row.label) },
        {
          id: "kind",
          title: "Kind",
          sort: () => 0,
          cell: (row) => {
            const isWithinError = row.certain === false;
            return h("span", { class: `tag ${isWithinError ? "noise" : row.kind}` }, isWithinError ? "within sampling error" : row.kind);
          },
        },
        { id: "change", title: `Change${each}`, numeric: true, sort: () => 0, cell: (row) => (row.range ? changed(row.range, unit, times) : signed((row.after - row.before) / times, unit)) },
        {
          id: "interval",
          title: "95% interval",
          hint: `95% confidence interval${each}, sampling error only`,
          numeric: true,
          cell: (row) =>
            row.range === null ? "unknown" : row.range.exact ? "exact" : interval(row.range, times),
        },
        { id: "before", title: "Before", numeric: true, sort: () => 0, cell: (row) => amount(row.before, unit) },
        { id: "after", title: "After", numeric: true, sort: () => 0, cell: (row) => amount(row.after, unit) },
        { id: "library", title: "Library", sort: () => 0, cell: (row) => name(row.library) },
      ],
      {
        label: "Changes by function",
        sorted: (column, descending) => {
          this.sort = { column, descending };
          this.list();
        },
        activate: (row) => this.search(row.key),
        empty: "No changes match.",
      },
    );
    table.markSort(this.sort.column, this.sort.descending);
    return table;
  }

  private list(): void {
    for (const [kind, button] of this.buttons) {
      const count = this.rows.filter((row) => isOf(row, kind)).length;
      button.textContent = `${button.textContent!.replace(/ \(.*/, "")} (${count})`;
      button.setAttribute("aria-pressed", String(kind === this.chosen));
      button.disabled = this.scene?.state.base === null;
    }
    const rows = this.rows.filter(
      (row) => isOf(row, this.chosen) && !(this.hideWithinError.checked && row.certain === false),
    );
    const by: Record<string, (row: ChangeRow) => number | string> = {
      label: (row) => row.label,
      kind: (row) => row.kind,
      change: (row) => row.after - row.before,
      before: (row) => row.before,
      after: (row) => row.after,
      library: (row) => row.library,
    };
    const value = by[this.sort.column] ?? by["change"]!;
    const sign = this.sort.descending ? -1 : 1;
    rows.sort((a, b) => {
      const left = value(a);
      const right = value(b);
      return left < right ? -sign : left > right ? sign : a.label < b.label ? -1 : 1;
    });
    this.table?.show(rows);
  }
}

/** Returns the functions with a changed self value, with the interval of the change. */
export function changeRows(profile: Profile, stage: Stage, scene: Scene): ChangeRow[] {
  const { state } = scene;
  if (state.base === null) return [];
  const keys = stage.keysBy("function");
  // The intervals use further columns. Each is summed by function only once.
  const sums = new Map<Column, Float64Array>();
  const selfOf = (column: Column): Float64Array => {
    let made = sums.get(column);
    if (!made) sums.set(column, (made = selfByKey(profile, scene.selection, keys, column)));
    return made;
  };
  const after = selfOf(scene.columns.get(state.dump, scene.measure));
  const index = measureOf(profile.dumps[state.base]!, profile.dumps[state.dump]!.facts.measures[scene.measure]!.name);
  const before = index < 0 ? null : selfOf(scene.columns.get(state.base, index));
  const present: number[] = [];
  for (let key = 0; key < keys.count; key++) if (after[key] !== 0 || (before && before[key] !== 0)) present.push(key);
  // Unchanged functions are tested too.
  const ranges = present.map((key) => stage.figure(scene, scene.measure, (column) => selfOf(column)[key]!).range);
  const certain = testChanges(ranges);
  const rows: ChangeRow[] = [];
  present.forEach((key, i) => {
    const now = after[key]!;
    const then = before?.[key] ?? 0;
    if (now === then) return;
    const id = profile.frames.function[keys.frameOf[key]!]!;
    rows.push({
      key,
      label: profile.texts[profile.functions.name[id]!] ?? "",
      library: libraryName(profile, profile.functions.library[id]!),
      before: then,
      after: now,
      kind: then === 0 ? "new" : now === 0 ? "gone" : now > then ? "grew" : "shrank",
      range: ranges[i]!,
      certain: certain[i]!,
    });
  });
  return rows;
}
