// Formats sampled values with their error. The form depends on the number of hits, and the error limits
// the digits, as in `analyze::sampling::shown` for the terminal.

import { isWithinError, type Range } from "./noise";
import { amount, counted, signed, type Unit } from "./units";

const STEPS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

interface Scale {
  unit: string;
  factor: number;
  /** Rounding step in the unit. */
  step: number;
  decimals: number;
}

/** Returns the unit of a value, and a step for which its half-width has at most `digits` digits. */
function scaleOf(value: number, half: number, digits: number): Scale {
  let at = 0;
  let size = Math.max(Math.abs(value), half / 8);
  for (; size >= 1023.95 && at < STEPS.length - 1; at++) size /= 1024;
  const factor = 1024 ** at;
  const step = 10 ** (Math.floor(Math.log10(half / factor)) + 1 - digits);
  const decimals = Math.min(at === 0 ? 0 : 2, Math.max(0, Math.round(-Math.log10(step))));
  return { unit: STEPS[at]!, factor, step: Math.max(step, 10 ** -decimals), decimals };
}

function rounded(value: number, { factor, step, decimals }: Scale, plus = false): string {
  const number = Math.round(value / factor / step) * step || 0;
  const text = Math.abs(number).toFixed(decimals);
  return number < 0 ? `−${text}` : plus && number > 0 ? `+${text}` : text;
}

/** Formats a size with its interval: `12.3 MiB ± 0.4`, `120 KiB (81-171)`, `< 12 KiB`. */
export function estimate(range: Range): string {
  const { value, low, high, hits, samples, exact } = range;
  const half = Math.max(value - low, high - value);
  if (exact || half <= 0) return amount(value, "bytes");
  if (samples <= 0 && value === 0) {
    const scale = scaleOf(high, high, 2);
    return `< ${rounded(high, scale)} ${scale.unit}`;
  }
  const width = half / Math.abs(value);
  const plain = hits >= 30 || width <= 0.4;
  const lead = half / 10 ** Math.floor(Math.log10(half));
  const scale = scaleOf(value, half, plain && lead >= 3 ? 1 : 2);
  const figure = `${rounded(value, scale)} ${scale.unit}`;
  if (plain) return `${figure} ± ${rounded(Math.ceil(half / scale.factor / scale.step - 1e-9) * scale.step * scale.factor, scale)}`;
  const ends = `(${rounded(low, scale)}${low < 0 ? " to " : "-"}${rounded(high, scale)})`;
  if (hits >= 10 || width <= 0.85) return `${figure} ${ends}`;
  return `~${figure} ${ends}, ${counted(samples, "sample")}`;
}

/** Formats a change with its interval, both to the same digit; marks intervals that include 0. */
export function change(range: Range, unit: Unit, times = 1): string {
  const figure = changed(range, unit, times);
  if (isExact(range)) return figure;
  const ends = interval(range, times);
  return isWithinError(range) ? `${figure}, interval includes 0 (${ends})` : `${figure} (${ends})`;
}

/** Formats a change without its interval, to the last digit of the interval. */
export function changed(range: Range, unit: Unit, times: number): string {
  const value = range.value / times;
  if (isExact(range)) return signed(value, unit);
  const scale = changeScale(range, times);
  return `${rounded(value, scale, true)} ${scale.unit}`;
}

/** Returns whether the change is shown without an interval. */
function isExact({ value, low, high, exact }: Range): boolean {
  return exact || value === 0 || high - low <= 0;
}

function changeScale({ value, low, high }: Range, times: number): Scale {
  const half = Math.max(value - low, high - value) / times;
  return scaleOf(Math.max(Math.abs(low), Math.abs(high)) / times, half, 2);
}

/** Formats the limits of a change, in one unit: `+0.54 to +1.02 MiB`. */
export function interval(range: Range, times: number): string {
  const scale = changeScale(range, times);
  return `${rounded(range.low / times, scale, true)} to ${rounded(range.high / times, scale, true)} ${scale.unit}`;
}
