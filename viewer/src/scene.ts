// Derives the shown data from the state of the page: filters, columns and trees. Each is computed once and
// cached until its inputs change.

import { parseFilter, type Filter } from "./filter";
import { hitsByFrame, matchedSum, sumsByKey, type Sums } from "./functions";
import { Tree, type Cell, type Direction } from "./grow";
import { keysFor, libraryName, type Grouping, type Keys } from "./keys";
import { Matcher } from "./matcher";
import { isWithinError, type Range } from "./noise";
import { Palette } from "./palette";
import { measureOf, type Profile } from "./profile";
import { IntervalCalculator, type Sum } from "./sampled";
import { select, type FrameFilter, type Selection } from "./select";
import type { State } from "./state";
import { Column, Columns, shownValues, type Shown } from "./values";

/** Value of one measure on both sides, with its confidence interval. */
export interface Figure {
  after: number;
  before: number;
  range: Range | null;
}

/** Parsed filter. */
export interface Chip {
  text: string;
  filter: Filter | null;
  error: string | null;
}

/** Data of the callstacks for one state of the page. */
export interface Scene {
  state: State;
  chips: Chip[];
  selection: Selection;
  columns: Columns;
  keys: Keys;
  measure: number;
  /** Measure on the other side; -1 if that side does not have it. */
  baseMeasure: number;
  unit: string;
  shown: Shown;
  /** Main tree; the callees in a sandwich. */
  tree: Tree;
  /** Callers in a sandwich; otherwise null. */
  callers: Tree | null;
  palette: Palette;
}

/** Cache of limited size; the oldest entry is dropped first. */
class BoundedCache<T> {
  private readonly made = new Map<string, T>();
  constructor(private readonly capacity: number) {}
  get(key: string, make: () => T): T {
    let value = this.made.get(key);
    if (value === undefined) {
      value = make();
      if (this.made.size >= this.capacity) this.made.delete(this.made.keys().next().value!);
      this.made.set(key, value);
    }
    return value;
  }
}

export class Stage {
  readonly matcher: Matcher;
  private readonly keys = new Map<Grouping, Keys>();
  private readonly palettes = new Map<number, Palette>();
  private readonly selections = new BoundedCache<{ selection: Selection; columns: Columns }>(2);
  private readonly shownFor = new BoundedCache<Shown>(3);
  private readonly trees = new BoundedCache<Tree>(6);
  private readonly sums = new BoundedCache<Sums>(12);

  constructor(readonly profile: Profile) {
    const { texts, functions } = profile;
    const names = Array.from(functions.name, (text) => texts[text] ?? "");
    this.matcher = new Matcher(names, profile.libraries.map(({ path }) => path));
  }

  keysBy(grouping: Grouping): Keys {
    let keys = this.keys.get(grouping);
    if (!keys) this.keys.set(grouping, (keys = keysFor(this.profile, grouping)));
    return keys;
  }

  /** Returns the scene of a state. Waits only for new regular expressions. */
  async scene(state: State): Promise<Scene> {
    const chips: Chip[] = [];
    const filters: FrameFilter[] = [];
    for (const text of state.filters) {
      const filter = parseFilter(text);
      if ("error" in filter) {
        chips.push({ text, filter: null, error: filter.error });
        continue;
      }
      try {
        const hits = await this.matcher.match(filter.pattern);
        filters.push({ kind: filter.kind, hits: hitsByFrame(this.profile, hits, filter.pattern.library) });
        chips.push({ text, filter, error: null });
      } catch (error) {
        chips.push({ text, filter, error: (error as Error).message });
      }
    }
    const chosen = chips.filter((chip) => !chip.error).map((chip) => chip.text);
    return this.assemble(state, chips, filters, JSON.stringify([chosen, state.allFrames]));
  }

  private assemble(state: State, chips: Chip[], filters: FrameFilter[], filterKey: string): Scene {
    const { profile } = this;
    const { selection, columns } = this.selections.get(filterKey, () => {
      const selection = select(profile, { filters, allFrames: state.allFrames });
      return { selection, columns: new Columns(profile, selection) };
    });
    const dump = profile.dumps[state.dump]!;
    const named = measureOf(dump, state.metric);
    const measure = named >= 0 ? named : dump.facts.default_measure;
    const facts = dump.facts.measures[measure]!;
    const base = state.base === null ? null : profile.dumps[state.base]!;
    const baseMeasure = base ? measureOf(base, facts.name) : -1;
    const numbers = `${filterKey} ${state.dump} ${state.base} ${facts.name} ${state.width}`;
    const shown = this.shownFor.get(numbers, () =>
      shownValues(
        profile,
        columns.get(state.dump, measure),
        base && baseMeasure >= 0 ? columns.get(state.base!, baseMeasure) : base ? emptyColumn(profile) : null,
        state.width,
      ),
    );
    const keys = this.keysBy(state.by);
    const options = { foldRecursion: state.foldRecursion, foldChains: state.foldChains };
    const treeFor = (direction: Direction): Tree =>
      this.trees.get(`${numbers} ${state.by} ${direction} ${state.foldRecursion} ${state.foldChains}`, () =>
        new Tree(profile, selection, keys, shown, direction, options),
      );
    const sandwich = state.view === "sandwich" && selection.pivots !== null;
    return {
      state,
      chips,
      selection,
      columns,
      keys,
      measure,
      baseMeasure,
      unit: facts.unit,
      shown,
      tree: treeFor(sandwich ? "callees" : state.view === "bottom-up" ? "bottom-up" : "top-down"),
      callers: sandwich ? treeFor("callers") : null,
      palette: this.palette(state.dump),
    };
  }

  /** Returns the colors, which do not depend on filters: libraries are ranked on the whole dump. */
  private palette(place: number): Palette {
    const dump = this.profile.dumps[place]!;
    const series = dump.facts.series;
    let palette = this.palettes.get(series);
    if (!palette) {
      const keys = this.keysBy("library");
      const selection = select(this.profile, { filters: [], allFrames: false });
      const column = new Columns(this.profile, selection).get(place, dump.facts.default_measure);
      const { self } = sumsByKey(this.profile, selection, keys, column);
      const whole = column.sum || 1;
      const ranked = Array.from(self, (value, key) => {
        const id = this.profile.frames.function[keys.frameOf[key]!]!;
        return { name: libraryName(this.profile, this.profile.functions.library[id]!), share: value / whole };
      })
        .filter(({ share }) => share > 0)
        .sort((a, b) => b.share - a.share);
      palette = new Palette(this.profile, ranked);
      this.palettes.set(series, palette);
    }
    return palette;
  }

  /** Returns sums by function, library or another key for one side. */
  sumsOf(scene: Scene, grouping: Grouping, place: number, measure: number): Sums {
    const { state } = scene;
    const key = JSON.stringify([state.filters, state.allFrames, grouping, place, measure]);
    return this.sums.get(key, () =>
      sumsByKey(this.profile, scene.selection, this.keysBy(grouping), scene.columns.get(place, measure)),
    );
  }

  /** Returns the sum over callstacks that match a search. Each callstack counts once. */
  matchedBy(scene: Scene, frameHits: Uint8Array): number {
    return matchedSum(this.profile, scene.selection, frameHits, scene.shown.after);
  }

  /** Returns the value of a measure for the callsites that `sum` adds up. */
  figure(scene: Scene, measure: number, sum: Sum): Figure {
    const { state, columns } = scene;
    const { facts } = this.profile.dumps[state.dump]!;
    const { name, view } = facts.measures[measure]!;
    const after = sum(columns.get(state.dump, measure));
    let before = 0;
    if (state.base !== null) {
      const index = measureOf(this.profile.dumps[state.base]!, name);
      if (index >= 0) before = sum(columns.get(state.base, index));
    }
    if (view !== "space" && view !== "alloc_space") return { after, before, range: null };
    const intervals = new IntervalCalculator(this.profile, columns);
    const range =
      state.base === null ? intervals.forDump(state.dump, view, sum) : intervals.forChange(state.base, state.dump, view, sum);
    return { after, before, range };
  }

  /** Returns the measure in bytes for a measure, because only bytes have confidence intervals; -1 if there is none. */
  private bytesOf(scene: Scene): number {
    const { measures } = this.profile.dumps[scene.state.dump]!.facts;
    const view = measures[scene.measure]!.view;
    const wanted = view === "objects" ? "space" : view === "alloc_objects" ? "alloc_space" : view;
    return measures.findIndex((measure) => measure.view !== null && measure.view === wanted);
  }

  /** Returns whether the interval of a change contains 0. */
  isChangeWithinError(scene: Scene, sum: Sum): boolean {
    const measure = this.bytesOf(scene);
    if (measure < 0) return false;
    const { range } = this.figure(scene, measure, sum);
    return range !== null && isWithinError(range);
  }

  /** Returns whether the interval of a cell's change contains 0; cached by cell. */
  isCellWithinError(scene: Scene, tree: Tree, cell: Cell): boolean {
    let known = withinError.get(cell);
    if (known === undefined) {
      known = this.isChangeWithinError(scene, (column) => tree.sum(cell, column));
      withinError.set(cell, known);
    }
    return known;
  }
}

const withinError = new WeakMap<Cell, boolean>();

function emptyColumn(profile: Profile): Column {
  return new Column(profile.nodes, new Float64Array(profile.nodes.count));
}
