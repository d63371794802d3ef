// Readings as text and as a table, for screen readers and for copying.

import { h, name } from "./dom";
import type { Rows, TimelineFacts } from "./format";
import type { UnreleasedDump } from "./held";
import { PARTS, value, type Group } from "./readings";
import { bytes, duration, thousands } from "./units";

/** Maximum number of rows, apart from labels and dumps. */
const MAX_ROWS = 1000;

/** Describes a collection. */
export function describeCollection(timeline: TimelineFacts, rows: Rows, row: number): string {
  const of = (column: string): number | null => value(rows, column, row);
  const word = (column: string): string => timeline.words[of(column) ?? 0] ?? "";
  const [freed, large, live, total] = [of("freed_bytes"), of("freed_large_bytes"), of("live"), of("total")];
  const [pause, took] = [of("longest_pause_ns"), of("duration_ns")];
  const parts = [
    [word("reason"), word("collector")].filter(Boolean).join(", "),
    freed === null ? "" : `freed ${bytes(freed)}${large ? ` and ${bytes(large)} of large objects` : ""}`,
    live === null ? "" : `live set ${bytes(live)}${total === null ? "" : ` of ${bytes(total)}`}`,
    pause === null ? "" : `${(of("pauses") ?? 0) > 1 ? "longest pause" : "pause"} ${formatPause(pause)}`,
    took === null ? "" : `took ${formatPause(took)}`,
    of("ours") === 1 ? "caused by heaptap" : "",
  ];
  return `Collection: ${parts.filter(Boolean).join("; ")}`;
}

function formatPause(ns: number): string {
  return ns < 1e6 ? `${Math.round(ns / 1000)} µs` : ns < 1e8 ? `${(ns / 1e6).toFixed(1)} ms` : duration(ns);
}

interface Moment {
  ms: number;
  pid: number | null;
  what: string;
  cells: (number | null)[];
}

/** Returns the table of all readings and events in chronological order. */
export function momentsTable(label: string, timeline: TimelineFacts, group: Group, unreleased: UnreleasedDump[], first: number): HTMLElement {
  const columns = ["PSS", "RSS", "Swap", ...PARTS.map(([, , words]) => words), "Java live", "Unreleased (estimated)"];
  const place = (words: string): number => columns.indexOf(words);
  const moments: Moment[] = [];
  const add = (ms: number, pid: number | null, what: string, cells: [string, number | null][]): void => {
    const row = new Array<number | null>(columns.length).fill(null);
    for (const [words, found] of cells) row[place(words)] = found;
    moments.push({ ms, pid, what, cells: row });
  };
  for (const life of group.lives) {
    const { pid, resident, parts, collections } = life;
    const source = (rows: Rows, row: number): string => timeline.words[rows.source[row]!] ?? "";
    const reading = (ms: number, row: number): string => {
      const capture = timeline.captures?.find((each) => each.pid === pid && each.ms === ms);
      return `${source(parts, row)}${capture ? `, captured for ${capture.text || "the end"}` : ""}`;
    };
    resident.ms.forEach((ms, row) =>
      add(ms, pid, source(resident, row), [["RSS", value(resident, "rss", row)], ["Swap", value(resident, "swap", row)]]),
    );
    parts.ms.forEach((ms, row) =>
      add(ms, pid, reading(ms, row), [
        ["PSS", value(parts, "total_pss", row)],
        ["RSS", value(parts, "total_rss", row)],
        ["Swap", value(parts, "swap", row)],
        ...PARTS.map(([column, , words]): [string, number | null] => [words, value(parts, column, row)]),
      ]),
    );
    collections.ms.forEach((ms, row) => add(ms, pid, describeCollection(timeline, collections, row), [["Java live", value(collections, "live", row)]]));
    if (life.gone_ms !== null) add(life.gone_ms, pid, "process ended", []);
  }
  for (const { ms, dump, bytes: size } of unreleased) add(ms, dump.pid, `dump ${dump.label ?? dump.number}`, [["Unreleased (estimated)", size]]);
  for (const { ms, text } of timeline.labels) add(ms, null, `label ${text}`, []);
  moments.sort((a, b) => a.ms - b.ms);
  const step = Math.ceil(moments.length / MAX_ROWS);
  const listed = moments.filter((moment, i) => i % step === 0 || moment.pid === null || moment.what.startsWith("dump"));
  return h(
    "div",
    { class: "wide scroll-rows", tabindex: 0, role: "region", "aria-label": label },
    h(
      "table",
      { class: "static" },
      h("caption", null, listed.length < moments.length ? `${thousands(listed.length)} of ${thousands(moments.length)} readings, in chronological order` : "In chronological order"),
      h("thead", null, h("tr", null, ...["Time", "Process", "Source or event", ...columns].map((words, i) => h("th", { scope: "col", class: i === 0 || i > 2 ? "n" : null }, words)))),
      h(
        "tbody",
        null,
        ...listed.map(({ ms, pid, what, cells }) =>
          h("tr", null, h("td", { class: "n" }, `+${((ms - first) / 1000).toFixed(3)} s`), h("td", null, pid ?? ""), h("td", null, name(what)), ...cells.map((cell) => h("td", { class: "n" }, cell === null ? "" : bytes(cell)))),
        ),
      ),
    ),
  );
}
