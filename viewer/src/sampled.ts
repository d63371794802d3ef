// What is needed beside the figures to say how sure they are: for each callsite how many of its
// samples may be small, and, between two dumps, what came and stayed and what went. Sums of these
// over callsites give the interval of the sum.

import { ofBytes, ofChange, smallSamples, type Range, type Sampled, type Sampling } from "./noise";
import { measureOf, type Profile } from "./profile";
import { Column, type Columns } from "./values";

/** Adds up a column over whatever a figure stands for. */
export type Sum = (column: Column) => number;

type View = "space" | "alloc_space";
const COUNTS: Record<View, string> = { space: "objects", alloc_space: "alloc_objects" };

/** One dump's bytes and counts of a view. */
interface Pair {
  bytes: Column;
  counts: Column;
  /** Samples that may be small, where callsites were summed before they came here; made when asked for. */
  small: (() => Column) | null;
}

export class Sureness {
  constructor(
    private readonly profile: Profile,
    private readonly columns: Columns,
  ) {}

  /** How a dump was sampled; null where nothing can be said of its error. */
  sampling(place: number): Sampling | null {
    const { interval, orig_interval, kind } = this.profile.dumps[place]!.facts;
    if (!interval || kind === "at-maximum") return null;
    const original = orig_interval || interval;
    return { interval: Math.max(interval, original), original };
  }

  /** Interval of a figure of one dump. */
  of(place: number, view: View, sum: Sum): Range | null {
    const sampling = this.sampling(place);
    const pair = this.pair(place, view);
    if (!sampling || !pair) return null;
    return ofBytes(this.summed(`small ${place} ${view}`, pair, sampling, sum), sampling);
  }

  /** Interval of a change from one dump to another. */
  between(from: number, to: number, view: View, sum: Sum): Range | null {
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
    // Of one recording, later minus earlier; seen from the other side, signs turn.
    if (to < from) {
      const turned = this.between(to, from, view, sum);
      const moved = turned?.moved && { came: turned.moved.went, went: turned.moved.came };
      return turned && { ...turned, value, low: -turned.high, high: -turned.low, moved };
    }
    const wider = { interval: Math.max(before.interval, after.interval), original: Math.min(before.original, after.original) };
    if (view === "alloc_space") {
      const made = this.made(`made ${from} ${to}`, () => since(allocatedWas, allocatedIs, wider));
      return ofChange(value, total(made, sum), wider.interval, null, wider.interval);
    }
    const came = this.made(`came ${from} ${to}`, () => least(since(allocatedWas, allocatedIs, wider), each(is, wider)));
    const went = this.made(`went ${from} ${to}`, () =>
      least(since(freed(allocatedWas, was), freed(allocatedIs, is), wider), each(was, wider)),
    );
    return ofChange(value, total(came, sum), wider.interval, total(went, sum), wider.interval);
  }

  private pair(place: number, view: View): Pair | null {
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

  private summed(key: string, pair: Pair, sampling: Sampling, sum: Sum): Sampled {
    const small = pair.small?.() ?? this.columns.derived(key, () => this.column(each(pair, sampling).small));
    return { bytes: sum(pair.bytes), samples: sum(pair.counts), small: sum(small) };
  }

  private column(self: Float64Array): Column {
    return new Column(this.profile.nodes, self);
  }

  /** Columns made of self values, with their sums over subtrees. */
  private made(key: string, make: () => Selves): Made {
    let selves: Selves | null = null;
    const part = (name: keyof Selves): Column =>
      this.columns.derived(`${key} ${name}`, () => this.column((selves ??= make())[name]));
    return { bytes: part("bytes"), samples: part("samples"), small: part("small") };
  }
}

type Selves = Record<keyof Sampled, Float64Array>;
type Made = Record<keyof Sampled, Column>;

const NOTHING: Sampled = { bytes: 0, samples: 0, small: 0 };

function total(made: Made, sum: Sum): Sampled {
  return { bytes: sum(made.bytes), samples: sum(made.samples), small: sum(made.small) };
}

/** A dump's values callsite by callsite. */
function each({ bytes, counts, small: known }: Selfs, sampling: Sampling): Selves {
  if (known) return { bytes: bytes.self, samples: counts.self, small: known().self };
  const small = new Float64Array(bytes.self.length);
  for (let node = 0; node < small.length; node++) {
    if (bytes.self[node] !== 0) small[node] = smallSamples(bytes.self[node]!, counts.self[node]!, sampling);
    else if (counts.self[node]! > 0) small[node] = counts.self[node]!;
  }
  return { bytes: bytes.self, samples: counts.self, small };
}

type Selfs = { bytes: { self: Float64Array }; counts: { self: Float64Array }; small?: (() => { self: Float64Array }) | null };

/** What was added from one dump to the other. */
function since(before: Selfs, after: Selfs, sampling: Sampling): Selves {
  const difference = (a: Float64Array, b: Float64Array): Float64Array => a.map((value, i) => Math.max(0, value - b[i]!));
  return each(
    {
      bytes: { self: difference(after.bytes.self, before.bytes.self) },
      counts: { self: difference(after.counts.self, before.counts.self) },
    },
    sampling,
  );
}

/** What had been freed by a dump. */
function freed(allocated: Selfs, held: Selfs): Selfs {
  const minus = (a: Float64Array, b: Float64Array): Float64Array => a.map((value, i) => value - b[i]!);
  return {
    bytes: { self: minus(allocated.bytes.self, held.bytes.self) },
    counts: { self: minus(allocated.counts.self, held.counts.self) },
  };
}

/** The lesser of two that both hold what is looked for. */
function least(a: Selves, b: Selves): Selves {
  const min = (left: Float64Array, right: Float64Array): Float64Array =>
    left.map((value, i) => Math.max(0, Math.min(value, right[i]!)));
  return { bytes: min(a.bytes, b.bytes), samples: min(a.samples, b.samples), small: min(a.small, b.small) };
}
