// Inputs of confidence intervals: the small samples of each callsite and, between two dumps, the increase
// and decrease of each callsite. Their sums over callsites give the interval of a sum.

import { ofBytes, ofChange, smallSamples, type Range, type Sampled, type Sampling } from "./noise";
import { measureOf, type Profile } from "./profile";
import { Column, type Columns } from "./values";

/** Sums a column over the callsites of a value. */
export type Sum = (column: Column) => number;

type View = "space" | "alloc_space";
const COUNTS: Record<View, string> = { space: "objects", alloc_space: "alloc_objects" };

/** Bytes and counts of a view of a dump. */
interface ViewColumns {
  bytes: Column;
  counts: Column;
  /** Small samples of summed callsites, computed on demand; null if callsites are not summed. */
  small: (() => Column) | null;
}

/** Computes confidence intervals. */
export class IntervalCalculator {
  constructor(
    private readonly profile: Profile,
    private readonly columns: Columns,
  ) {}

  /** Returns the sampling parameters of a dump; null if its error is unknown. */
  sampling(place: number): Sampling | null {
    const { interval, orig_interval, kind } = this.profile.dumps[place]!.facts;
    if (!interval || kind === "at-maximum") return null;
    const original = orig_interval || interval;
    return { interval: Math.max(interval, original), original };
  }

  /** Returns the interval of a value of one dump. */
  forDump(place: number, view: View, sum: Sum): Range | null {
    const sampling = this.sampling(place);
    const pair = this.pair(place, view);
    if (!sampling || !pair) return null;
    return ofBytes(this.summed(`small ${place} ${view}`, pair, sampling, sum), sampling);
  }

  /** Returns the interval of a change from one dump to another. */
  forChange(from: number, to: number, view: View, sum: Sum): Range | null {
    const [before, after] = [this.sampling(from), this.sampling(to)];
    const [was, is] = [this.pair(from, view), this.pair(to, view)];
    if (!before || !after || !is) return null;
    const value = sum(is.bytes) - (was ? sum(was.bytes) : 0);
    const { dumps } = this.profile;
    const paired = dumps[from]!.facts.series === dumps[to]!.facts.series;
    const [allocatedWas, allocatedIs] = [this.pair(from, "alloc_space"), this.pair(to, "alloc_space")];
    if (!paired || !was || !allocatedWas || !allocatedIs) {
      const came = this.summed(`small ${to} ${view}`, is, after, sum);
      const went = was ? this.summed(`small ${from} ${view}`, was, before, sum) : NOTHING;
      return ofChange(value, came, after.interval, went, before.interval);
    }
    // The interval of the reverse comparison has opposite signs.
    if (to < from) {
      const turned = this.forChange(to, from, view, sum);
      const moved = turned?.moved && { came: turned.moved.went, went: turned.moved.came };
      return turned && { ...turned, value, low: -turned.high, high: -turned.low, moved };
    }
    const wider = { interval: Math.max(before.interval, after.interval), original: Math.min(before.original, after.original) };
    if (view === "alloc_space") {
      const made = this.made(`made ${from} ${to}`, () => allocatedSince(allocatedWas, allocatedIs, wider));
      return ofChange(value, total(made, sum), wider.interval, NOTHING, wider.interval);
    }
    const came = this.made(`came ${from} ${to}`, () => minimum(allocatedSince(allocatedWas, allocatedIs, wider), samplesOf(is, wider)));
    const went = this.made(`went ${from} ${to}`, () =>
      minimum(allocatedSince(freedBefore(allocatedWas, was), freedBefore(allocatedIs, is), wider), samplesOf(was, wider)),
    );
    return ofChange(value, total(came, sum), wider.interval, total(went, sum), wider.interval);
  }

  private pair(place: number, view: View): ViewColumns | null {
    const dump = this.profile.dumps[place]!;
    const find = (name: string): number => {
      const at = dump.facts.measures.findIndex((measure) => measure.view === name);
      return at >= 0 ? at : measureOf(dump, name);
    };
    const [bytes, counts] = [find(view), find(COUNTS[view])];
    const small = dump.facts.measures.findIndex((measure) => measure.small_of === view);
    return bytes < 0 || counts < 0
      ? null
      : {
          bytes: this.columns.get(place, bytes),
          counts: this.columns.get(place, counts),
          small: small < 0 ? null : () => this.columns.get(place, small),
        };
  }

  private summed(key: string, pair: ViewColumns, sampling: Sampling, sum: Sum): Sampled {
    const small = pair.small?.() ?? this.columns.derived(key, () => this.column(samplesOf(pair, sampling).small));
    return { bytes: sum(pair.bytes), samples: sum(pair.counts), small: sum(small) };
  }

  private column(self: Float64Array): Column {
    return new Column(this.profile.nodes, self);
  }

  /** Returns columns of computed self values, with their sums over subtrees. */
  private made(key: string, make: () => SelfSamples): SampleColumns {
    let selves: SelfSamples | null = null;
    const part = (name: keyof SelfSamples): Column =>
      this.columns.derived(`${key} ${name}`, () => this.column((selves ??= make())[name]));
    return { bytes: part("bytes"), samples: part("samples"), small: part("small") };
  }
}

type SelfSamples = Record<keyof Sampled, Float64Array>;
type SampleColumns = Record<keyof Sampled, Column>;

const NOTHING: Sampled = { bytes: 0, samples: 0, small: 0 };

function total(made: SampleColumns, sum: Sum): Sampled {
  return { bytes: sum(made.bytes), samples: sum(made.samples), small: sum(made.small) };
}

/** Returns the samples of a dump by callsite. */
function samplesOf({ bytes, counts, small: known }: SelfColumns, sampling: Sampling): SelfSamples {
  if (known) return { bytes: bytes.self, samples: counts.self, small: known().self };
  const small = new Float64Array(bytes.self.length);
  for (let node = 0; node < small.length; node++) {
    if (bytes.self[node] !== 0) small[node] = smallSamples(bytes.self[node]!, counts.self[node]!, sampling);
    else if (counts.self[node]! > 0) small[node] = counts.self[node]!;
  }
  return { bytes: bytes.self, samples: counts.self, small };
}

type SelfColumns = { bytes: { self: Float64Array }; counts: { self: Float64Array }; small?: (() => { self: Float64Array }) | null };

/** Returns what was allocated between two dumps. */
function allocatedSince(before: SelfColumns, after: SelfColumns, sampling: Sampling): SelfSamples {
  const difference = (a: Float64Array, b: Float64Array): Float64Array => a.map((value, i) => Math.max(0, value - b[i]!));
  return samplesOf(
    {
      bytes: { self: difference(after.bytes.self, before.bytes.self) },
      counts: { self: difference(after.counts.self, before.counts.self) },
    },
    sampling,
  );
}

/** Returns what had been freed before a dump. */
function freedBefore(allocated: SelfColumns, unreleased: SelfColumns): SelfColumns {
  const minus = (a: Float64Array, b: Float64Array): Float64Array => a.map((value, i) => value - b[i]!);
  return {
    bytes: { self: minus(allocated.bytes.self, unreleased.bytes.self) },
    counts: { self: minus(allocated.counts.self, unreleased.counts.self) },
  };
}

/** Returns the minimum of two upper limits. */
function minimum(a: SelfSamples, b: SelfSamples): SelfSamples {
  const min = (left: Float64Array, right: Float64Array): Float64Array =>
    left.map((value, i) => Math.max(0, Math.min(value, right[i]!)));
  return { bytes: min(a.bytes, b.bytes), samples: min(a.samples, b.samples), small: min(a.small, b.small) };
}
