// Sampled figures in words: how many digits they deserve (docs/leaks.md has the same rules).

import { isNoise, type Range } from "./noise";
import { amount, bytes, signed, type Unit } from "./units";

/** A figure with its interval: `12.3 MiB ± 0.4 MiB`, `~12 KiB (2 to 35)`. */
export function estimate(range: Range, unit: Unit): string {
  const { value, low, high, hits } = range;
  if (hits === Infinity) return amount(value, unit);
  if (value === 0) return `< ${bytes(high)}`;
  if (hits >= 30) return `${amount(value, unit)} ± ${amount((high - low) / 2, unit)}`;
  const about = hits >= 10 ? "" : "~";
  return `${about}${amount(value, unit)} (${amount(low, unit)} to ${amount(high, unit)})`;
}

/** A change with its interval, and whether it can be noise. */
export function change(range: Range, unit: Unit, times: number): string {
  const { value, low, high, hits } = range;
  const figure = signed(value / times, unit);
  if (hits === Infinity || value === 0) return figure;
  const interval = `${signed(low / times, unit)} to ${signed(high / times, unit)}`;
  return isNoise(range) ? `${figure}, within noise (${interval})` : `${figure} (${interval})`;
}
