// Controls above the views: heap, dump, comparison, measure, direction, filters, and the path to the zoomed
// cell.

import { button, fill, h, name, sentence } from "./dom";
import { FILTER_TITLES, parseFilter, formatFilter } from "./filter";
import { labelOf } from "./flame";
import { pathOf, type Cell } from "./grow";
import { measureTitle } from "./details";
import type { Grouping } from "./keys";
import { sanitize } from "./names";
import type { Profile } from "./profile";
import type { Chip, Scene } from "./scene";
import type { State, ViewKind } from "./state";
import { amount } from "./units";
import type { DiffWidth } from "./values";

export interface ToolbarEvents {
  change(patch: Partial<State>): void;
  zoom(cell: Cell): void;
  undo(): void;
  redo(): void;
  save(): void;
}

/** Minimum distance of the popup to the edge of the page in px. */
const MARGIN = 8;

/** Returns the name of a dump in a list. */
export function dumpTitle(profile: Profile, place: number): string {
  const { facts } = profile.dumps[place]!;
  const label = facts.label ? sanitize(facts.label) : "";
  return label ? `@${facts.number} (${label})` : `@${facts.number}`;
}

/** Returns the name of a series: process, its ID if there are several, and heap. */
function seriesTitle(profile: Profile, series: number): string {
  const { process, pid, heap } = profile.header.series[series]!;
  const same = profile.header.series.filter((each) => each.process === process && each.heap === heap).length > 1;
  return [`${sanitize(process || "process")}${same && pid ? ` (${pid})` : ""}`, sanitize(heap || "")].filter(Boolean).join(" · ");
}

function segments<T extends string>(label: string, entries: [T, string, string][], pick: (value: T) => void) {
  const buttons = entries.map(([value, text, title]) => ({ value, button: button(text, { title, onclick: () => pick(value) }) }));
  return {
    element: h("div", { class: "segments", role: "group", "aria-label": label }, ...buttons.map((each) => each.button)),
    press(value: T): void {
      for (const each of buttons) each.button.setAttribute("aria-pressed", String(each.value === value));
    },
  };
}

export class Toolbar {
  readonly element: HTMLElement;
  readonly filterInput: HTMLInputElement;
  private readonly heap = h("select", { "aria-label": "Process and heap" });
  private readonly dump = h("select", { "aria-label": "Dump" });
  private readonly base = h("select", { "aria-label": "Compare with" });
  private readonly metric = h("select", { "aria-label": "Measure" });
  private readonly by = h("select", { "aria-label": "Boxes by" });
  private readonly view;
  private readonly width;
  private readonly widthHost: HTMLElement;
  private readonly checks: { field: "allFrames" | "foldRecursion" | "foldChains" | "up"; input: HTMLInputElement }[];
  private readonly undo: HTMLButtonElement;
  private readonly redo: HTMLButtonElement;
  private readonly chips = h("div", { class: "chips", role: "group", "aria-label": "Filters" });
  private readonly crumbs = h("nav", { class: "crumbs", "aria-label": "Zoom path" });
  private readonly notices = h("div", { class: "notices" });
  private readonly fault = h("p", { class: "fault", role: "alert" });
  private readonly flameOnly: HTMLElement[];
  private state: State | null = null;

  constructor(
    private readonly profile: Profile,
    private readonly events: ToolbarEvents,
  ) {
    const { header } = profile;
    this.view = segments<ViewKind>(
      "View",
      [
        ["top-down", "Top-down", "From the outermost caller to the allocating function (b)"],
        ["bottom-up", "Bottom-up", "From the allocating function to its callers (b)"],
        ["sandwich", "Sandwich", "Callers and callees of a pivot"],
      ],
      (view) => events.change({ view, zoom: [], selected: [] }),
    );
    this.width = segments<DiffWidth>(
      "Box width",
      [
        ["after", "After", "Widths are the sizes after"],
        ["before", "Before", "Widths are the sizes before, including memory that is gone"],
        ["change", "Change", "Widths are the sizes of the changes, in either direction"],
      ],
      (width) => events.change({ width }),
    );
    this.widthHost = h("span", { class: "labelled" }, h("span", { class: "soft" }, "Width"), this.width.element);
    const check = (field: "allFrames" | "foldRecursion" | "foldChains" | "up", text: string, title: string) => {
      const input = h("input", { type: "checkbox", onchange: () => events.change({ [field]: input.checked }) });
      return { field, input, label: h("label", { class: "check", title }, input, text) };
    };
    const checks = [
      check("allFrames", "Allocator and runtime frames", "Show frames such as malloc, operator new and those of ART (a)"),
      check("foldRecursion", "Fold recursion", "Show a recursive function as one box (r)"),
      check("foldChains", "Fold unbranched chains", "Show callers with a single callee in one box with it"),
      check("up", "Flames instead of icicles", "Show callers below and callees above (i)"),
    ];
    this.checks = checks;
    fill(
      this.heap,
      ...header.series.map((_, i) => h("option", { value: i }, seriesTitle(profile, i))),
    );
    this.heap.addEventListener("change", () => this.pickSeries(Number(this.heap.value)));
    this.dump.addEventListener("change", () => events.change({ dump: Number(this.dump.value) }));
    this.base.addEventListener("change", () =>
      events.change({ base: this.base.value === "none" ? null : Number(this.base.value), zoom: [], selected: [] }),
    );
    this.metric.addEventListener("change", () => events.change({ metric: this.metric.value }));
    const groupings: [Grouping, string][] = [
      ["function", "function"],
      ["line", "line"],
      ["library", "library"],
      ["package", "package"],
    ];
    fill(this.by, ...groupings.map(([value, text]) => h("option", { value }, text)));
    this.by.addEventListener("change", () =>
      events.change({ by: this.by.value as Grouping, zoom: [], selected: [] }),
    );
    this.undo = button("↶", { title: "Undo (u)", "aria-label": "Undo", onclick: () => events.undo() });
    this.redo = button("↷", { title: "Redo (U)", "aria-label": "Redo", onclick: () => events.redo() });
    this.filterInput = h("input", {
      type: "text",
      class: "filter",
      placeholder: "Filter by function or /regex/",
      "aria-label": "Add a filter, such as SS: text or HF: /expression/",
      spellcheck: "false",
      autocomplete: "off",
      onkeydown: (event: KeyboardEvent) => {
        if (event.key !== "Enter") return;
        event.preventDefault();
        this.add(this.filterInput.value);
      },
    });
    const popup = h(
      "div",
      { class: "popup" },
      ...checks.map((each) => each.label),
      h("label", { class: "check" }, "Boxes by ", this.by),
      button("Save shown callstacks as folded text", { onclick: () => events.save() }),
    );
    const options = h("details", { class: "menu" }, h("summary", null, "Options"), popup);
    // Moves the popup left if it would leave the page at the right.
    options.addEventListener("toggle", () => {
      popup.style.left = "0";
      const { left, right } = popup.getBoundingClientRect();
      const over = right + MARGIN - document.documentElement.clientWidth;
      if (over > 0) popup.style.left = `${-Math.min(over, Math.max(0, left - MARGIN))}px`;
    });
    document.addEventListener("click", (event) => {
      if (!options.contains(event.target as Node)) options.open = false;
    });
    this.flameOnly = [this.view.element, this.crumbs];
    this.element = h(
      "div",
      { class: "toolbar" },
      h(
        "div",
        { class: "bar" },
        header.series.length > 1 ? h("label", { class: "labelled" }, h("span", { class: "soft" }, "Heap"), this.heap) : null,
        h("label", { class: "labelled" }, h("span", { class: "soft" }, "Dump"), this.dump),
        header.dumps.length > 1 ? h("label", { class: "labelled" }, h("span", { class: "soft" }, "Compare with"), this.base) : null,
        h("label", { class: "labelled" }, h("span", { class: "soft" }, "Measure"), this.metric),
        this.view.element,
        this.widthHost,
        options,
      ),
      h(
        "div",
        { class: "bar filters" },
        this.chips,
        this.filterInput,
        h("span", { class: "gap" }),
        h("span", { class: "pair" }, this.undo, this.redo),
      ),
      this.fault,
      this.notices,
      this.crumbs,
    );
  }

  /** Adds a filter, or shows the reason why it is invalid. */
  add(text: string): void {
    const filter = parseFilter(text);
    if ("error" in filter) {
      this.showFault(filter.error);
      return;
    }
    this.filterInput.value = "";
    const filters = [...(this.state?.filters ?? []), formatFilter(filter)];
    this.events.change(filter.kind === "P" ? { filters, view: "sandwich", zoom: [], selected: [] } : { filters, zoom: [], selected: [] });
  }

  showFault(fault: string): void {
    this.fault.textContent = fault;
    this.filterInput.setAttribute("aria-invalid", fault ? "true" : "false");
  }

  private pickSeries(series: number): void {
    const { header } = this.profile;
    const dumps = header.series[series]!.dumps;
    const pair = header.diff?.pairs.find(({ after }) => after !== null && dumps.includes(after));
    const dump = pair?.after ?? dumps[dumps.length - 1]!;
    this.events.change({ dump, base: pair?.before ?? null, metric: "", zoom: [], selected: [] });
  }

  /** Returns the dumps that a dump can be compared with: first of the same series, then of the same heap. */
  private comparable(dump: number): number[] {
    const { header } = this.profile;
    const { facts } = this.profile.dumps[dump]!;
    const own = header.series[facts.series]?.dumps.filter((place) => place !== dump) ?? [];
    const pairs = (header.diff?.pairs ?? [])
      .filter((pair) => pair.after === dump || pair.before === dump)
      .flatMap(({ before, after }) => [before, after]);
    const alike = header.dumps.flatMap((each, place) => (each.heap === facts.heap ? [place] : []));
    const all = [...own, ...pairs, ...alike].filter((place): place is number => place !== null && place !== dump);
    return [...new Set(all)];
  }

  show(scene: Scene, zoomed: Cell, undo: boolean, redo: boolean): void {
    const { profile } = this;
    const { state } = scene;
    this.state = state;
    const { facts } = profile.dumps[state.dump]!;
    this.heap.value = String(facts.series);
    const own = profile.header.series[facts.series]?.dumps ?? [state.dump];
    fill(this.dump, ...own.map((place) => h("option", { value: place }, dumpTitle(profile, place))));
    this.dump.value = String(state.dump);
    this.dump.disabled = own.length < 2;
    const others = this.comparable(state.dump);
    fill(
      this.base,
      h("option", { value: "none" }, "None"),
      ...others.map((place) => {
        const other = profile.dumps[place]!.facts;
        const words = other.series === facts.series ? "" : ` (${seriesTitle(profile, other.series)})`;
        return h("option", { value: place }, dumpTitle(profile, place) + words);
      }),
    );
    this.base.value = String(state.base ?? "none");
    fill(this.metric, ...facts.measures.filter((measure) => !measure.small_of).map((measure) => h("option", { value: measure.name }, measureTitle(measure))));
    this.metric.value = facts.measures[scene.measure]!.name;
    this.by.value = state.by;
    this.view.press(state.view);
    this.width.press(state.width);
    this.widthHost.hidden = scene.shown.before === null;
    for (const each of this.checks) each.input.checked = state[each.field];
    this.undo.disabled = !undo;
    this.redo.disabled = !redo;
    const graphs = state.tab === "flame";
    for (const element of this.flameOnly) element.hidden = !graphs;
    this.showNotices(state);
    this.showChips(scene.chips);
    this.showCrumbs(scene, zoomed);
  }

  /** Shows problems of the shown dumps next to them. */
  private showNotices(state: State): void {
    const { header } = this.profile;
    const places = [state.dump, ...(state.base === null ? [] : [state.base])];
    const words: string[] = [];
    for (const place of places) {
      const title = dumpTitle(this.profile, place);
      const facts = header.dumps[place]!;
      const warnings = header.warnings.filter((warning) => warning.dumps?.includes(place));
      for (const warning of warnings) words.push(`${title}: ${warning.message}`);
      if (facts.unfinished && warnings.length === 0) words.push(`${title} is incomplete: its values are lower bounds.`);
      if (facts.kind === "at-maximum") words.push(`${title} shows the heap at its maximum. It does not have confidence intervals, and its differences are not growth.`);
    }
    fill(this.notices, ...[...new Set(words)].map((text) => h("p", null, sentence(text))));
  }

  private showChips(chips: Chip[]): void {
    fill(
      this.chips,
      ...chips.map((chip, i) =>
        h(
          "span",
          { class: chip.error ? "chip bad" : "chip", title: sanitize(chip.error ?? chip.text) },
          h("b", null, chip.filter ? FILTER_TITLES[chip.filter.kind] : "?"),
          " ",
          name(chip.filter ? readable(chip.filter.pattern.source) : chip.text),
          button("×", {
            "aria-label": `Remove the filter ${sanitize(chip.text)}`,
            onclick: () => {
              const filters = this.state!.filters.filter((_, at) => at !== i);
              const pivot = filters.some((text) => /^p(ivot)?\s*:/i.test(text));
              this.events.change({
                filters,
                zoom: [],
                selected: [],
                view: this.state!.view === "sandwich" && !pivot ? "top-down" : this.state!.view,
              });
            },
          }),
        ),
      ),
      chips.length > 1 ? button("Remove all", { onclick: () => this.events.change({ filters: [], zoom: [], selected: [], view: this.state!.view === "sandwich" ? "top-down" : this.state!.view }) }) : null,
    );
    const bad = chips.find((chip) => chip.error);
    this.showFault(bad ? `${sanitize(bad.text)}: ${bad.error}` : "");
  }

  private showCrumbs(scene: Scene, zoomed: Cell): void {
    const path = pathOf(zoomed);
    const parts: Node[] = [];
    const crumb = (cell: Cell, text: string): void => {
      const element = button("", { class: "link", onclick: () => this.events.zoom(cell), "aria-current": cell === zoomed ? "true" : null });
      element.append(name(text));
      parts.push(element);
    };
    crumb(scene.tree.root, `all ${amount(scene.tree.root.after, scene.unit)}`);
    const skipped = Math.max(0, path.length - 5);
    if (skipped > 0) parts.push(h("span", { class: "soft" }, `… ${skipped} …`));
    for (const cell of path.slice(skipped)) crumb(cell, labelOf(scene, cell));
    fill(this.crumbs, ...parts.flatMap((part, i) => (i === 0 ? [part] : [h("span", { class: "soft", "aria-hidden": "true" }, "›"), part])));
  }
}

/** Returns the name `foo(int)` for the pattern `/^foo\(int\)$/`. */
function readable(source: string): string {
  const form = /^(lib:)?\/\^(.*)\$\/$/.exec(source);
  if (!form) return source;
  const bare = form[2]!.replace(/\\([.*+?^${}()|[\]\\/])/g, "\u0000$1");
  // Remaining special characters mean that it was not an escaped name.
  if (/(^|[^\u0000])[.*+?^${}()|[\]\\]/.test(bare)) return source;
  return (form[1] ?? "") + bare.replace(/\u0000/g, "");
}
