// Formats numbers. Sizes use IEC units (1 KiB = 1024 B), as everywhere in heaptap.

export type Unit = "bytes" | "count" | string;

const STEPS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Formats a size such as `12.3 MiB`; its minus sign is as wide as a digit. */
export function bytes(value: number): string {
  const sign = value < 0 ? "−" : "";
  let size = Math.abs(value);
  if (size < 1024) return `${sign}${Number.isInteger(size) ? size : size.toFixed(1)} B`;
  let step = 0;
  // Otherwise 1023.96 KiB would be formatted as 1024.0 KiB.
  while (size >= 1023.95 && step < STEPS.length - 1) {
    size /= 1024;
    step += 1;
  }
  // The program rounds halves to even digits, toFixed rounds them up: they differ for 63.25 only.
  if (size % 1 === 0.25) size -= 0.05;
  return `${sign}${size.toFixed(1)} ${STEPS[step]}`;
}

/** Formats an integer such as `1,234,567`. */
export function thousands(value: number): string {
  const sign = value < 0 ? "−" : "";
  const digits = String(Math.round(Math.abs(value)));
  return sign + digits.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/** Formats `1 dump` or `1,024 dumps`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${thousands(count)} ${count === 1 ? noun : plural}`;
}

/** Formats a value in its unit, rounded. */
export function amount(value: number, unit: Unit): string {
  if (unit === "bytes") return bytes(value);
  if (unit === "count") return thousands(value);
  return `${thousands(value)} ${unit}`;
}

/** Formats an exact value in its unit, such as `1,234 B`. */
export function exact(value: number, unit: Unit): string {
  if (unit === "bytes") return `${thousands(value)} B`;
  return amount(value, unit);
}

/** Formats a change with its sign. */
export function signed(value: number, unit: Unit): string {
  return value > 0 ? `+${amount(value, unit)}` : value < 0 ? amount(value, unit) : `±${amount(0, unit)}`;
}

/** Formats a share such as `12.3%`; `–` if the whole is zero. */
export function percent(part: number, whole: number): string {
  if (!whole) return "–";
  const share = (100 * part) / whole;
  const size = Math.abs(share);
  if (size > 0 && size < 0.01) return share < 0 ? "−<0.01%" : "<0.01%";
  const text = size.toFixed(size >= 99.95 || size === 0 ? 0 : size < 1 ? 2 : 1);
  return `${share < 0 ? "−" : ""}${text}%`;
}

/** Formats nanoseconds as heaptap does in the terminal: `1m 05s`, `12.4 s`, `85 ms`. */
export function duration(ns: number): string {
  const s = ns / 1e9;
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 60) return `${s.toFixed(1)} s`;
  const minutes = Math.floor(s / 60);
  if (minutes < 60) return `${minutes}m ${pad(Math.floor(s % 60))}s`;
  return `${Math.floor(minutes / 60)}h ${pad(minutes % 60)}m`;
}

function pad(value: number): string {
  return String(value).padStart(2, "0");
}
