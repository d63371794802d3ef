// How far sampled figures can be off: heapprofd takes one sample in T bytes on average, so a sum
// of X bytes is a Poisson count K = X/T in disguise. The formulas are those of the command-line
// tool's `analyze::sampling`, and a test compares both on the same numbers.

/** A figure and the ends of its 95 % interval. */
export interface Range {
  value: number;
  low: number;
  high: number;
  /** How many sample points it rests on; infinite where nothing was sampled (exact). */
  hits: number;
}

const Z = 1.96;

/** Lower end of a Poisson count (Byar). */
export function lowCount(k: number): number {
  if (k < 1) return 0;
  const root = 1 - 1 / (9 * k) - Z / (3 * Math.sqrt(k));
  return Math.max(0, k * root ** 3);
}

/** Upper end of a Poisson count (Byar). */
export function highCount(k: number): number {
  const m = k + 1;
  return m * (1 - 1 / (9 * m) + Z / (3 * Math.sqrt(m))) ** 3;
}

/** How a dump was sampled. */
export interface Sampling {
  /** Mean bytes between two samples, at the end; 1 is exact. */
  interval: number;
  /** What was asked for: sizes of single small allocations are multiples of it. */
  original: number;
}

/** Hits that can be small allocations, given the number of samples: large ones are exact. */
function sampledHits(value: number, { interval, original }: Sampling, samples: number | null): number {
  const k = Math.max(0, value) / interval;
  if (samples === null) return k;
  const small = Math.max(0, samples - (value % original !== 0 ? 1 : 0));
  const cap = small === 0 ? 0 : 1.582 * small + 1.6 * Math.sqrt(small) + 1;
  return Math.min(k, cap);
}

/** Interval of bytes at a callsite or of a sum over disjoint ones. */
export function ofBytes(value: number, sampling: Sampling, samples: number | null): Range {
  const { interval } = sampling;
  if (interval === 1) return { value, low: value, high: value, hits: Infinity };
  const k = sampledHits(value, sampling, samples);
  return {
    value,
    low: Math.max(0, value - interval * (k - lowCount(k))),
    high: value + interval * (highCount(k) - k),
    hits: k,
  };
}

/** One side of a difference. */
export interface Side {
  /** Bytes on this side: of a pair, those that moved in this direction. */
  value: number;
  interval: number;
}

/** Interval of a change `value`, where what came and what went are independent counts. */
export function ofDifference(value: number, came: Side, went: Side): Range {
  const spread = (side: Side): [number, number, number] => {
    if (side.interval === 1) return [0, 0, 0];
    const k = Math.max(0, side.value) / side.interval;
    return [side.interval * (k - lowCount(k)), side.interval * (highCount(k) - k), k];
  };
  // Nothing moved on either side: the two figures are one and the same.
  const idle = came.value <= 0 && went.value <= 0;
  const [downAfter, upAfter, p] = idle ? [0, 0, 0] : spread(came);
  const [downBefore, upBefore, q] = idle ? [0, 0, 0] : spread(went);
  const exact = came.interval === 1 && went.interval === 1;
  return {
    value,
    low: value - Math.hypot(downAfter, upBefore),
    high: value + Math.hypot(upAfter, downBefore),
    hits: exact ? Infinity : p + q,
  };
}

/** What two dumps of one heap say about a sum of callsites. */
export interface Pair {
  heldBefore: number;
  heldAfter: number;
  allocatedBefore: number;
  allocatedAfter: number;
  interval: number;
}

/** Interval of the growth of held bytes between two dumps of one heap: what survived both
 * cancels exactly, only what came and what went is uncertain. */
export function ofGrowth(pair: Pair): Range {
  const came = pair.allocatedAfter - pair.allocatedBefore;
  const growth = pair.heldAfter - pair.heldBefore;
  const went = came - growth;
  return ofDifference(
    growth,
    { value: Math.min(came, pair.heldAfter), interval: pair.interval },
    { value: Math.min(went, pair.heldBefore), interval: pair.interval },
  );
}

/** Whether a change can be sampling noise alone: 0 lies within its interval. */
export function isNoise(range: Range): boolean {
  return range.value !== 0 && range.low <= 0 && range.high >= 0;
}
