// Which of many changes stand out: of a thousand functions that did not change, fifty have an
// interval without zero. A sign test for each, and Benjamini and Hochberg's rule over all, as
// `heaptap diff` judges its rows.

import type { Range } from "./noise";

/** Fewer hits can't reach any significance. */
const FEWEST_HITS = 5;
/** Of the changes that are called certain so many may be chance. */
const FALSE_DISCOVERIES = 0.05;
/** Up to here the tail is summed term by term. */
const SUMMED = 20_000;

/** Logarithm of n! (Stirling's series above, by steps below). */
function lnFactorial(n: number): number {
  let shift = 0;
  let x = n + 1;
  for (; x < 10; x++) shift += Math.log(x);
  const series = 1 / (12 * x) - 1 / (360 * x ** 3) + 1 / (1260 * x ** 5);
  return (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + series - shift;
}

/** The chance of `least` or more among `of` tries. */
export function binomialTail(of: number, least: number, chance: number): number {
  if (least <= 0) return 1;
  if (least > of) return 0;
  if (of > SUMMED) return normalTail((least - 0.5 - of * chance) / Math.sqrt(of * chance * (1 - chance)));
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

/** The upper tail of the normal distribution (Abramowitz and Stegun 7.1.26, to 1e-7). */
function normalTail(z: number): number {
  if (z < 0) return 1 - normalTail(-z);
  const x = z / Math.SQRT2;
  const t = 1 / (1 + 0.3275911 * x);
  const poly = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  return 0.5 * poly * Math.exp(-x * x);
}

/** How likely sampling alone makes as much of a change; null where no test can tell. */
function chanceOf({ value, exact, moved }: Range): number | null {
  if (exact || !moved) return null;
  const [kept, released] = value < 0 ? [moved.went, moved.came] : [moved.came, moved.went];
  if (kept.hits + released.hits < FEWEST_HITS) return null;
  // Equal bytes give hits in inverse proportion to the intervals.
  const chance = released.interval / (kept.interval + released.interval);
  const tries = Math.floor(kept.hits + released.hits + 1e-9);
  return Math.min(1, 2 * binomialTail(tries, Math.ceil(kept.hits - 1e-9), chance));
}

/** Which of all rows of a table changed for certain; null where nothing is known of the error. */
export function certain(ranges: (Range | null)[]): (boolean | null)[] {
  const chances = ranges.map((range) => (range ? chanceOf(range) : null));
  const tested = chances.filter((chance) => chance !== null).sort((a, b) => a - b);
  let limit = -1;
  tested.forEach((chance, at) => {
    if (chance <= (FALSE_DISCOVERIES * (at + 1)) / tested.length) limit = chance;
  });
  return ranges.map((range, i) => {
    if (!range) return null;
    const outside = range.low > 0 || range.high < 0;
    const chance = chances[i] ?? null;
    if (chance !== null) return outside && chance <= limit;
    // What was recorded at full size has no error that could explain it.
    return outside && (range.exact || range.hits === 0);
  });
}
