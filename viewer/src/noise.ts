// Sampling error. heapprofd takes one sample per T bytes on average, so a sum of X bytes corresponds to a
// Poisson count K = X/T. The formulas are those of `analyze::sampling` in the program; the tests compare
// both on the same dumps.

/** Value with its 95% confidence interval. */
export interface Range {
  value: number;
  low: number;
  high: number;
  /** Number of hits that determine the error; fewer hits mean a wider interval. */
  hits: number;
  samples: number;
  /** Whether every allocation was recorded, without sampling error. */
  exact: boolean;
  /** For a change: increase and decrease in hits. */
  moved?: { came: Moved; went: Moved };
}

/** Increase or decrease of a change. */
export interface Moved {
  /** Bytes in intervals. */
  hits: number;
  /** Hits with a sampling error; the others are allocations of their true size. */
  uncertain: number;
  interval: number;
}

/** Sampling parameters of a dump. */
export interface Sampling {
  /** Mean bytes between two samples, at the end; 1 is exact. */
  interval: number;
  /** Interval at the start of the recording; sizes of small allocations are multiples of it. */
  original: number;
}

/** Sampled bytes of disjoint callsites. Intervals are computed from sums, not summed. */
export interface Sampled {
  bytes: number;
  samples: number;
  /** Samples that can be allocations smaller than the interval; the others have their true size. */
  small: number;
}

/** Standard deviations of a 95% confidence interval. */
export const Z95 = 1.959963984540054;

/** Returns the lower limit of the mean of a Poisson count at `z` standard deviations (Byar). */
function lowCount(k: number, z: number): number {
  if (k < 1) return 0;
  const root = Math.max(0, 1 - 1 / (9 * k) - z / (3 * Math.sqrt(k)));
  return k * root ** 3;
}

/** Returns the upper limit of the mean of a Poisson count at `z` standard deviations (Byar). */
function highCount(k: number, z: number): number {
  const m = Math.max(0, k) + 1;
  return m * (1 - 1 / (9 * m) + z / (3 * Math.sqrt(m))) ** 3;
}

/** Returns the number of samples of a callsite that can be small. At least one sample is large if the size
 * is not a multiple of the interval, or if a single sample has eight intervals. */
export function smallSamples(bytes: number, samples: number, { interval, original }: Sampling): number {
  const size = Math.abs(bytes);
  const large = size % original !== 0 || (samples === 1 && size / 8 >= interval && size > 0);
  return Math.max(0, Math.max(0, samples) - (large ? 1 : 0));
}

/** Returns the hits of a sample, and how many of them have an error: at most those of its small samples. */
function movedBy({ bytes, small }: Sampled, interval: number): Moved {
  const hits = Math.max(0, bytes) / interval;
  const cap = small <= 0 ? 0 : 1.582 * small + 1.6 * Math.sqrt(small) + 1;
  return { hits, uncertain: interval === 1 ? 0 : Math.min(hits, cap), interval };
}

/** Returns how far the true bytes can be below and above the estimate at `z` standard deviations. */
function errorOf({ uncertain, interval }: Moved, z: number): { below: number; above: number } {
  if (interval === 1) return { below: 0, above: 0 };
  return { below: interval * (uncertain - lowCount(uncertain, z)), above: interval * (highCount(uncertain, z) - uncertain) };
}

/** Returns the interval of the bytes of one callsite, or of a sum over disjoint ones. */
export function ofBytes(sampled: Sampled, { interval }: Sampling): Range {
  const { bytes: value, samples } = sampled;
  const moved = movedBy(sampled, interval);
  const { below, above } = errorOf(moved, Z95);
  // Without samples, the one-sided limit is three intervals.
  const none = samples <= 0 && value === 0;
  return {
    value,
    low: none ? 0 : Math.max(0, value - below),
    high: none && interval !== 1 ? interval * Math.log(20) : value + above,
    hits: moved.uncertain,
    samples,
    exact: interval === 1,
  };
}

/** Returns the interval of a change, whose increase and decrease are independent counts. */
export function ofChange(
  value: number,
  came: Sampled,
  cameInterval: number,
  went: Sampled,
  wentInterval: number,
): Range {
  const moved = { came: movedBy(came, cameInterval), went: movedBy(went, wentInterval) };
  return {
    value,
    ...limits(value, moved, Z95),
    hits: moved.came.uncertain + moved.went.uncertain,
    samples: came.samples + went.samples,
    exact: cameInterval === 1 && wentInterval === 1,
    moved,
  };
}

/** Returns the limits of a change at `z` standard deviations. */
export function limits(value: number, { came, went }: { came: Moved; went: Moved }, z: number): { low: number; high: number } {
  const [up, down] = [errorOf(came, z), errorOf(went, z)];
  return { low: value - Math.hypot(up.below, down.above), high: value + Math.hypot(up.above, down.below) };
}

/** Returns whether the interval of one change contains 0. Tables test all their rows together (chance.ts). */
export function isWithinError(range: Range): boolean {
  return !range.exact && range.value !== 0 && range.low <= 0 && range.high >= 0;
}
