// Significance of many changes. Of a thousand unchanged functions, fifty have an interval that excludes
// zero. So the chance of each change is computed, and the rule of Benjamini and Hochberg is applied to all
// of them, as in `heaptap diff`.

import { limits, Z95, type Moved, type Range } from "./noise";

/** Minimum number of hits that can be significant. */
const MIN_HITS = 5;
/** Maximum expected share of chance among the changes that are called certain. */
const MAX_FALSE_DISCOVERIES = 0.05;
/** Maximum number of tries for which the tail is summed term by term. */
const MAX_SUMMED_TRIES = 20_000;
/** Standard deviations beyond which a chance is as good as none. */
const MAX_Z = 16;
/** Number of halvings of the range of standard deviations: to 0.004. */
const HALVINGS = 12;

/** Returns the logarithm of n!: by Stirling's series from 10 on, by recurrence below. */
function lnFactorial(n: number): number {
  let shift = 0;
  let x = n + 1;
  for (; x < 10; x++) shift += Math.log(x);
  const series = 1 / (12 * x) - 1 / (360 * x ** 3) + 1 / (1260 * x ** 5);
  return (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + series - shift;
}

/** Returns the probability of at least `least` successes in `of` tries. */
export function binomialTail(of: number, least: number, chance: number): number {
  if (least <= 0) return 1;
  if (least > of) return 0;
  if (of > MAX_SUMMED_TRIES) return normalTail((least - 0.5 - of * chance) / Math.sqrt(of * chance * (1 - chance)));
  const odds = chance / (1 - chance);
  let term = Math.exp(
    lnFactorial(of) - lnFactorial(least) - lnFactorial(of - least) + least * Math.log(chance) + (of - least) * Math.log1p(-chance),
  );
  let sum = 0;
  for (let k = least; k <= of; k++) {
    sum += term;
    const next = (term * odds * (of - k)) / (k + 1);
    if (next < term && next < sum * 1e-17) break;
    term = next;
  }
  return Math.min(1, sum);
}

/** Returns the upper tail of the normal distribution: Laplace's continued fraction from 1 on, and Abramowitz
 * and Stegun 7.1.26, to 1e-7, below. */
function normalTail(z: number): number {
  if (z < 0) return 1 - normalTail(-z);
  const density = Math.exp(-0.5 * z * z);
  if (z >= 1) {
    let fraction = z;
    for (let k = 100; k > 0; k--) fraction = z + k / fraction;
    return density / Math.sqrt(2 * Math.PI) / fraction;
  }
  const t = 1 / (1 + (0.3275911 * z) / Math.SQRT2);
  const poly = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  return 0.5 * poly * density;
}

/** Returns the probability that sampling alone causes such a change; null if it cannot be tested. */
function chanceOf({ value, exact, moved, hits: uncertain }: Range): number | null {
  if (exact || !moved) return null;
  const [kept, released] = value < 0 ? [moved.went, moved.came] : [moved.came, moved.went];
  const hits = kept.hits + released.hits;
  if (hits < MIN_HITS) return null;
  if (uncertain < hits) return chanceOfLimits(Math.abs(value), kept, released);
  // Equal bytes give hits in inverse proportion to the intervals.
  const chance = released.interval / (kept.interval + released.interval);
  return Math.min(1, 2 * binomialTail(Math.floor(hits + 1e-9), Math.ceil(kept.hits - 1e-9), chance));
}

/** Returns the chance of the limits that just exclude zero; 1 if those of 95% include it. Allocations of
 * their true size do not err, so a sign test, which counts their hits, hides a change among them. */
function chanceOfLimits(change: number, came: Moved, went: Moved): number {
  const excludeZero = (z: number): boolean => limits(change, { came, went }, z).low > 0;
  if (!excludeZero(Z95)) return 1;
  let [low, high] = [Z95, MAX_Z];
  for (let i = 0; i < HALVINGS; i++) {
    const middle = (low + high) / 2;
    if (excludeZero(middle)) low = middle;
    else high = middle;
  }
  return 2 * normalTail((low + high) / 2);
}

/** Returns whether each row of a table changed beyond sampling error; null if the error is unknown. */
export function testChanges(ranges: (Range | null)[]): (boolean | null)[] {
  const chances = ranges.map((range) => (range ? chanceOf(range) : null));
  const tested = chances.filter((chance) => chance !== null).sort((a, b) => a - b);
  let limit = -1;
  tested.forEach((chance, at) => {
    if (chance <= (MAX_FALSE_DISCOVERIES * (at + 1)) / tested.length) limit = chance;
  });
  return ranges.map((range, i) => {
    if (!range) return null;
    const outside = range.low > 0 || range.high < 0;
    const chance = chances[i] ?? null;
    if (chance !== null) return outside && chance <= limit;
    // Allocations recorded at their true size do not have a sampling error.
    return outside && (range.exact || range.hits === 0);
  });
}
