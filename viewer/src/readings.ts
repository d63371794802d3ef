// Readings of processes over time (viewer/README.md, "Memory over time"): processes of one name, readings
// at a time, lines with gaps, and the memory by kind at a dump.

import type { DumpFacts, Header, Life, Note, Part, RecordedFacts, Rows, TimelineFacts, Where } from "./format";
import { dumpName } from "./names";
import { duration } from "./units";

/** Connected points of a line. */
export type Run = [ms: number, value: number][];

/** Returns the readings of each recording on the page; the name is empty if there is only one. */
export function recordings(header: Header): RecordedFacts[] {
  const { timeline, timelines, dumps } = header;
  if (timeline) return [{ name: "", from: 0, to: dumps.length, timeline }];
  return timelines ?? [];
}

/** Processes of one name in chronological order. */
export interface Group {
  name: string;
  lives: Life[];
}

/** Groups processes by name: profiled ones first, then those with the most readings. */
export function groups(timeline: TimelineFacts, dumps: DumpFacts[]): Group[] {
  const all = new Map<string, Group>();
  for (const life of timeline.processes) {
    const name = life.process || (life.pid ? `process ${life.pid}` : "the device");
    const group = all.get(name) ?? { name, lives: [] };
    group.lives.push(life);
    all.set(name, group);
  }
  const pids = new Set(dumps.map((dump) => dump.pid));
  const weight = ({ lives }: Group): number =>
    (lives.some((life) => pids.has(life.pid)) ? 1e9 : 0) + lives.reduce((sum, life) => sum + life.resident.ms.length + life.parts.ms.length + life.collections.ms.length, 0);
  return [...all.values()].sort((a, b) => weight(b) - weight(a));
}

/** Returns the number of rows before a time. */
function rowsBefore(rows: Rows, ms: number): number {
  let low = 0;
  let high = rows.ms.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows.ms[middle]! < ms) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns the row nearest to a time; -1 if there are none. */
export function nearest(rows: Rows, ms: number): number {
  const after = rowsBefore(rows, ms);
  if (after === 0) return rows.ms.length > 0 ? 0 : -1;
  if (after === rows.ms.length) return after - 1;
  return ms - rows.ms[after - 1]! <= rows.ms[after]! - ms ? after - 1 : after;
}

/** Returns the last row at or before a time; -1 if there is none. */
export function lastRowAt(rows: Rows, ms: number): number {
  const at = rowsBefore(rows, ms);
  return rows.ms[at] === ms ? at : at - 1;
}

export function value(rows: Rows, column: string, row: number): number | null {
  return rows.columns[column]?.[row] ?? null;
}

/** Returns the process that exists at a time; null if none does. */
export function lifeAt(group: Group, ms: number): Life | null {
  let found: Life | null = null;
  for (const life of group.lives) {
    if (life.from_ms <= ms && ms <= Math.max(life.to_ms, life.gone_ms ?? 0)) found = life;
  }
  return found;
}

/** Returns the value of a column at a time: the nearest reading on the same line. */
export function valueAt(group: Group, kind: RowsKind, column: string, ms: number): number | null {
  const life = lifeAt(group, ms);
  if (!life) return null;
  const rows = life[kind];
  let row = lastRowAt(rows, ms);
  const next = row + 1;
  const gap = rows.breaks.includes(next);
  if (row < 0) {
    row = next;
  } else if (next < rows.ms.length && !gap && rows.ms[next]! - ms < ms - rows.ms[row]!) {
    row = next;
  } else if (gap && ms > rows.ms[row]!) {
    return null;
  }
  // If the reading does not have this column, an earlier one on the line has it.
  for (; row >= 0; row--) {
    const found = value(rows, column, row);
    if (found !== null) return found;
    if (rows.breaks.includes(row)) return null;
  }
  return null;
}

export type RowsKind = "resident" | "parts" | "graphics" | "java_heap" | "collections";

/** Returns a column as connected points, separated at gaps and restarts. */
export function runs(group: Group, kind: RowsKind, column: string): Run[] {
  const all: Run[] = [];
  for (const life of group.lives) {
    const rows = life[kind];
    const values = rows.columns[column];
    if (!values) continue;
    const breaks = new Set(rows.breaks);
    let run: Run = [];
    rows.ms.forEach((ms, row) => {
      if (breaks.has(row) && run.length > 0) {
        all.push(run);
        run = [];
      }
      const found = values[row];
      if (found !== null && found !== undefined) run.push([ms, found]);
    });
    if (run.length > 0) all.push(run);
  }
  return all;
}

/** Returns whether a dump has a label; with several recordings, their name precedes the label. */
export function hasLabel(label: string, dump: DumpFacts): boolean {
  return dump.label === label || (dump.label?.endsWith(`@${label}`) ?? false);
}

/** Time at which memory was read for a label, or for the last dump without a label. */
export interface Captured {
  /** Time of the label or dump. */
  ms: number;
  read: number;
}

/** Returns the captures of processes, by the time of their labels. `dumps` are those of the recording. */
export function capturesOf(timeline: TimelineFacts, pids: (number | null | undefined)[], dumps: DumpFacts[]): Captured[] {
  const all: Captured[] = [];
  const add = (ms: number, fits: (capture: Note) => boolean): void => {
    const own = (timeline.captures ?? []).filter((capture) => pids.includes(capture.pid) && fits(capture));
    const nearest = own.sort((a, b) => Math.abs(a.ms - ms) - Math.abs(b.ms - ms))[0];
    if (nearest) all.push({ ms, read: nearest.ms });
  };
  for (const { ms, text } of timeline.labels) add(ms, (capture) => capture.text === text);
  const last = new Map<unknown, number>();
  for (const { pid, time_ms } of dumps) last.set(pid, Math.max(time_ms ?? 0, last.get(pid) ?? 0));
  for (const dump of dumps) {
    if (dump.time_ms === null || !pids.includes(dump.pid)) continue;
    const isLast = dump.time_ms === last.get(dump.pid);
    if (dump.label === null && !isLast) continue;
    add(dump.time_ms, (capture) => capture.pid === dump.pid && (dump.label === null ? capture.text === "" : hasLabel(capture.text, dump)));
  }
  return all;
}

/** Parts of meminfo's App Summary: column, name in `where`, label. */
export const PARTS: [column: string, name: string, label: string][] = [
  ["java", "java", "Java"],
  ["native", "native", "Native"],
  ["code", "code", "Code"],
  ["stack", "stack", "Stack"],
  ["graphics", "graphics", "Graphics"],
  ["private_other", "other", "Private Other"],
  ["system", "system", "System"],
];

/** Maximum distance to a dump that counts as the same time, in ms. */
const SAME_MS = 500;

/**
 * Returns the memory by kind at a dump from readings near it. Without readings, returns the values of the
 * page if they are of the same recording, which is the one of the initial dump.
 */
export function whereAt(header: Header, place: number, first: number): Where | null {
  const dump = header.dumps[place];
  const own = recordings(header).find(({ from, to }) => from <= place && place < to);
  const timeline = own?.timeline;
  const several = (header.timelines ?? []).length > 0;
  const fallback = !several || (own && own.from <= first && first < own.to) ? header.where : null;
  if (!dump || !timeline || dump.time_ms === null) return fallback;
  const ms = dump.time_ms;
  const apart = (life: Life): number => Math.max(0, life.from_ms - ms, ms - life.to_ms);
  const life = timeline.processes.filter(({ pid }) => pid === dump.pid).sort((a, b) => apart(a) - apart(b))[0];
  const captured = capturesOf(timeline, [dump.pid], header.dumps.slice(own.from, own.to)).find((each) => each.ms === ms);
  const row = life ? nearest(life.parts, captured?.read ?? ms) : -1;
  if (!life || row < 0) return fallback;
  const how = (name: string): string | null => header.where?.parts.find((part) => part.name === name)?.how?.replace(/; .*/, "") ?? null;
  const parts: Part[] = PARTS.map(([column, name]) => ({ name, bytes: value(life.parts, column, row), how: how(name) }));
  const read = life.parts.ms[row]! - ms;
  const title = dumpName(dump);
  return {
    total: value(life.parts, "total_pss", row),
    of: "PSS including swapped memory",
    at: Math.abs(read) <= SAME_MS ? title : `${title}, ${captured ? "captured" : "read"} ${duration(Math.abs(read) * 1e6)} ${read < 0 ? "before" : "after"} it`,
    // In the order of the page.
    parts: [...parts].sort((a, b) => (a.name === "native" ? -1 : b.name === "native" ? 1 : 0)),
  };
}
