// From what is looked at to what is drawn: filters to columns to trees, each made once and kept
// until what it depends on changes.

import { parseFilter, type Filter } from "./filter";
import { hitsByFrame, matched, sumsByKey, type Sums } from "./functions";
import { Tree, type Cell, type Direction } from "./grow";
import { keysFor, libraryName, type Grouping, type Keys } from "./keys";
import { Matcher } from "./matcher";
import { isNoise, ofBytes, ofDifference, ofGrowth, type Range, type Sampling } from "./noise";
import { Palette } from "./palette";
import { measureOf, type Profile } from "./profile";
import { select, type FrameFilter, type Selection } from "./select";
import type { State } from "./state";
import { Columns, shownValues, type Column, type Shown } from "./values";

/** A figure of one measure on both sides, with what is needed to say how sure it is. */
export interface Figure {
  after: number;
  before: number;
  range: Range | null;
}

/** What a chip became. */
export interface Chip {
  text: string;
  filter: Filter | null;
  error: string | null;
}

/** Everything one state of the page shows of the call stacks. */
export interface Scene {
  state: State;
  chips: Chip[];
  selection: Selection;
  columns: Columns;
  keys: Keys;
  measure: number;
  /** The measure on the other side; -1 where that side lacks it. */
  baseMeasure: number;
  unit: string;
  shown: Shown;
  /** The main tree; in a sandwich the callees. */
  tree: Tree;
  /** In a sandwich the callers. */
  callers: Tree | null;
  palette: Palette;
}

/** A small memory of things made for a key. */
class Kept<T> {
  private readonly made = new Map<string, T>();
  constructor(private readonly most: number) {}
  get(key: string, make: () => T): T {
    let value = this.made.get(key);
    if (value === undefined) {
      value = make();
      if (this.made.size >= this.most) this.made.delete(this.made.keys().next().value!);
      this.made.set(key, value);
    }
    return value;
  }
}

export class Stage {
  readonly matcher: Matcher;
  private readonly keys = new Map<Grouping, Keys>();
  private readonly palettes = new Map<number, Palette>();
  private readonly selections = new Kept<{ selection: Selection; columns: Columns }>(3);
  private readonly shownFor = new Kept<Shown>(3);
  private readonly trees = new Kept<Tree>(6);
  private readonly sums = new Kept<Sums>(12);

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

  /** The scene of a state. Waits only where a regular expression is new. */
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
        base && baseMeasure >= 0 ? columns.get(state.base!, baseMeasure) : base ? nothing(profile) : null,
        state.width,
      ),
    );
    const keys = this.keysBy(state.by);
    const options = { foldRecursion: state.foldRecursion, foldChains: state.foldChains };
    const grown = (direction: Direction): Tree =>
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
      tree: grown(sandwich ? "callees" : state.view === "bottom-up" ? "bottom-up" : "top-down"),
      callers: sandwich ? grown("callers") : null,
      palette: this.palette(state.dump),
    };
  }

  /** Colours stay while filters come and go: they are ranked on the whole dump. */
  private palette(place: number): Palette {
    const dump = this.profile.dumps[place]!;
    const series = dump.facts.series;
    let palette = this.palettes.get(series);
    if (!palette) {
      const keys = this.keysBy("library");
      const selection = select(this.profile, { filters: [], allFrames: false });
      const column = new Columns(this.profile, selection).get(place, dump.facts.default_measure);
      const { self } = sumsByKey(this.profile, selection, keys, column);
      const whole = column.total[0] || 1;
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

  /** Sums by function, library … of one side. */
  sumsOf(scene: Scene, grouping: Grouping, place: number, measure: number): Sums {
    const { state } = scene;
    const key = JSON.stringify([state.filters, state.allFrames, grouping, place, measure]);
    return this.sums.get(key, () =>
      sumsByKey(this.profile, scene.selection, this.keysBy(grouping), scene.columns.get(place, measure)),
    );
  }

  /** Bytes in stacks that a search matches, each once. */
  matchedBy(scene: Scene, frameHits: Uint8Array): number {
    return matched(this.profile, scene.selection, frameHits, scene.shown.after);
  }

  /** A figure of a measure for a set of callsites that `sum` adds up. */
  figure(scene: Scene, measure: number, sum: (column: Column) => number): Figure {
    const { state, columns } = scene;
    const dump = this.profile.dumps[state.dump]!;
    const { facts } = dump;
    const view = facts.measures[measure]!.view;
    const after = sum(columns.get(state.dump, measure));
    const at = (place: number, name: string): number | null => {
      const index = measureOf(this.profile.dumps[place]!, name);
      return index < 0 ? null : sum(columns.get(place, index));
    };
    const name = facts.measures[measure]!.name;
    const before = state.base === null ? 0 : (at(state.base, name) ?? 0);
    const none: Figure = { after, before, range: null };
    const bytes = view === "space" || view === "alloc_space";
    if (!facts.interval || facts.kind === "at-maximum" || view === null) return none;
    const sampling: Sampling = { interval: facts.interval, original: facts.orig_interval || facts.interval };
    if (state.base === null) {
      if (!bytes) return none;
      const samples = at(state.dump, view === "space" ? "objects" : "alloc_objects");
      return { after, before, range: ofBytes(after, sampling, samples) };
    }
    const other = this.profile.dumps[state.base]!.facts;
    if (!other.interval || other.kind === "at-maximum") return none;
    // Counts are numbers of samples: one hit each.
    const scale = (interval: number): number => (bytes || interval === 1 ? interval : COUNTED);
    if (other.series === facts.series && (view === "space" || view === "objects")) {
      const allocated = view === "space" ? "alloc_space" : "alloc_objects";
      const allocatedAfter = at(state.dump, allocated);
      const allocatedBefore = at(state.base, allocated);
      if (allocatedAfter !== null && allocatedBefore !== null) {
        const later = state.dump >= state.base ? 1 : -1;
        const pair = {
          heldBefore: later > 0 ? before : after,
          heldAfter: later > 0 ? after : before,
          allocatedBefore: later > 0 ? allocatedBefore : allocatedAfter,
          allocatedAfter: later > 0 ? allocatedAfter : allocatedBefore,
          interval: scale(Math.max(facts.interval, other.interval)),
        };
        const range = ofGrowth(pair);
        return {
          after,
          before,
          range: later > 0 ? range : { value: -range.value, low: -range.high, high: -range.low, hits: range.hits },
        };
      }
    }
    const range = ofDifference(
      after - before,
      { value: after, interval: scale(facts.interval) },
      { value: before, interval: scale(other.interval) },
    );
    return { after, before, range };
  }

  /** Whether the change of a cell can be noise; remembered by the cell. */
  noisy(scene: Scene, tree: Tree, cell: Cell): boolean {
    let known = noise.get(cell);
    if (known === undefined) {
      const { range } = this.figure(scene, scene.measure, (column) => tree.sum(cell, column));
      known = range !== null && isNoise(range);
      noise.set(cell, known);
    }
    return known;
  }
}

const noise = new WeakMap<Cell, boolean>();

/** The interval of a count: one a hit. Not the number 1, which stands for exact. */
const COUNTED = 1 + Number.EPSILON;

function nothing(profile: Profile): Column {
  const zeros = new Float64Array(profile.nodes.count);
  return { self: zeros, total: zeros };
}
