// How far sampled figures can be off: heapprofd takes one sample in T bytes on average, so a sum
// of X bytes is a Poisson count K = X/T in disguise. The formulas are those of the command line's
// `analyze::sampling`, and the tests compare both on the same dumps.

/** A figure and the ends of its 95 % interval. */
export interface Range {
  value: number;
  low: number;
  high: number;
  /** Hits that carry the error; few make a wide interval. */
  hits: number;
  samples: number;
  /** Every allocation was recorded: there is no error. */
  exact: boolean;
  /** Of a change: what came and what went, in hits. */
  moved?: { came: Moved; went: Moved };
}

/** One part of a change. */
export interface Moved {
  hits: number;
  interval: number;
}

/** How a dump was sampled. */
export interface Sampling {
  /** Mean bytes between two samples, at the end; 1 is exact. */
  interval: number;
  /** As the recording began: sizes of small allocations are multiples of it. */
  original: number;
}

/** Sampled bytes of disjoint callsites: sums first, intervals afterwards. */
export interface Sampled {
  bytes: number;
  samples: number;
  /** Samples that may be allocations below the interval; the others have their true size. */
  small: number;
}

const Z = 1.959963984540054;

/** Lower limit of the mean of a Poisson count (Byar). */
export function lowCount(k: number): number {
  if (k < 1) return 0;
  const root = Math.max(0, 1 - 1 / (9 * k) - Z / (3 * Math.sqrt(k)));
  return k * root ** 3;
}

/** Upper limit of the mean of a Poisson count (Byar). */
export function highCount(k: number): number {
  const m = Math.max(0, k) + 1;
  return m * (1 - 1 / (9 * m) + Z / (3 * Math.sqrt(m))) ** 3;
}

/** Of one callsite's samples those that may be small: a size that is no multiple of the interval,
 * or a single sample of eight intervals, shows one that surely is not. */
export function smallSamples(bytes: number, samples: number, { interval, original }: Sampling): number {
  const size = Math.abs(bytes);
  const large = size % original !== 0 || (samples === 1 && size / 8 >= interval && size > 0);
  return Math.max(0, Math.max(0, samples) - (large ? 1 : 0));
}

/** Hits that carry error: no more than small samples can plausibly have had. */
function uncertainHits({ bytes, small }: Sampled, interval: number): number {
  const cap = small <= 0 ? 0 : 1.582 * small + 1.6 * Math.sqrt(small) + 1;
  return Math.min(Math.max(0, bytes) / interval, cap);
}

/** What the true bytes can lie below and above. */
function slack(sampled: Sampled, interval: number): { below: number; above: number; hits: number } {
  if (interval === 1) return { below: 0, above: 0, hits: 0 };
  const hits = uncertainHits(sampled, interval);
  return { below: interval * (hits - lowCount(hits)), above: interval * (highCount(hits) - hits), hits };
}

/** Interval of bytes at a callsite or of a sum over disjoint ones. */
export function ofBytes(sampled: Sampled, { interval }: Sampling): Range {
  const { bytes: value, samples } = sampled;
  const { below, above, hits } = slack(sampled, interval);
  // Nothing sampled: three intervals at most, one-sided.
  const none = samples <= 0 && value === 0;
  return {
    value,
    low: none ? 0 : Math.max(0, value - below),
    high: none && interval !== 1 ? interval * Math.log(20) : value + above,
    hits,
    samples,
    exact: interval === 1,
  };
}

/** Interval of a change: what came and stayed, and what went, are independent counts. */
export function ofChange(
  value: number,
  came: Sampled,
  cameInterval: number,
  went: Sampled | null,
  wentInterval: number,
): Range {
  const up = slack(came, cameInterval);
  const down = went ? slack(went, wentInterval) : { below: 0, above: 0, hits: 0 };
  return {
    value,
    low: value - Math.hypot(up.below, down.above),
    high: value + Math.hypot(up.above, down.below),
    hits: up.hits + down.hits,
    samples: came.samples + (went?.samples ?? 0),
    exact: cameInterval === 1 && wentInterval === 1,
    moved: {
      came: { hits: Math.max(0, came.bytes) / cameInterval, interval: cameInterval },
      went: { hits: Math.max(0, went?.bytes ?? 0) / wentInterval, interval: wentInterval },
    },
  };
}

/** Whether a change can be sampling noise alone: 0 lies within its interval. */
export function isNoise(range: Range): boolean {
  return !range.exact && range.value !== 0 && range.low <= 0 && range.high >= 0;
}
