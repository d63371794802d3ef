// Initial state of the page, and the growth on its first screen.

import type { GrowthSite, Header, Series } from "./format";
import { dumpName, sanitize } from "./names";
import type { Profile } from "./profile";
import type { Stage } from "./scene";
import { changeRows, type ChangeRow } from "./changes";
import { select } from "./select";
import { Columns, shownValues } from "./values";
import type { Scene } from "./scene";
import type { State, Tab } from "./state";
import { describedHeap, type GrowthRow, type GrowthTotal } from "./summary";

export const TAB_TITLES: Record<Tab, string> = {
  flame: "Flame graph",
  tree: "Callstacks",
  functions: "Functions",
  libraries: "Libraries",
  changes: "Difference",
  java: "Java heap",
  info: "Info",
};

export function availableTabs(header: Header): Tab[] {
  const tabs: Tab[] = [];
  if (header.dumps.length > 0) tabs.push("flame", "tree", "functions", "libraries");
  if (header.dumps.length > 1) tabs.push("changes");
  if (header.java && header.java.length > 0) tabs.push("java");
  tabs.push("info");
  return tabs;
}

/**
 * Returns the state with the default dump of the largest heap; with several recordings, of the last one. A
 * page of a difference opens on that difference.
 */
export function firstState(header: Header, tabs: Tab[]): State {
  let dump = -1;
  let most = -Infinity;
  const recorded = header.timelines?.[header.timelines.length - 1];
  const begin = !recorded ? 0 : recorded.to === header.dumps.length ? recorded.from : recorded.to;
  for (const series of header.series) {
    const { shown } = series;
    const facts = header.dumps[shown];
    if (!facts || (shown < begin && begin < header.dumps.length)) continue;
    const measure = facts.measures[facts.default_measure];
    const total = measure?.unit === "bytes" ? measure.total : 0;
    if (total > most) {
      most = total;
      dump = shown;
    }
  }
  let base: number | null = null;
  const pairs = header.diff?.pairs.filter((pair) => pair.after !== null) ?? [];
  if (pairs.length > 0) {
    const pair = pairs.find((each) => each.after === dump) ?? pairs[0]!;
    dump = pair.after!;
    base = pair.before;
  }
  return {
    tab: tabs[0]!,
    view: "top-down",
    dump,
    base,
    metric: "",
    filters: [],
    by: "function",
    allFrames: false,
    foldRecursion: false,
    foldChains: false,
    up: false,
    width: "after",
    zoom: [],
    selected: [],
    search: "",
    java: Math.max(0, describedHeap(header.java ?? [])),
  };
}

/** Returns the first dump of a series and the one that its growth ends at: that shown first, as `heaptap leaks`. */
export function endsOf(series: Series | undefined): [number, number] | null {
  const [first, ...later] = series?.dumps ?? [];
  const last = later[later.length - 1];
  if (first === undefined || last === undefined) return null;
  return [first, series!.shown === first ? last : series!.shown];
}

/** Returns the growth over the series of the first screen, or between the sides of a difference. */
export function growth(
  profile: Profile,
  stage: Stage,
  start: State,
): { rows: GrowthRow[]; total: GrowthTotal | null; why: string } {
  const { header } = profile;
  const facts = header.dumps[start.dump];
  const none = { rows: [], total: null, why: noGrowthReason(header, start.dump) };
  if (!facts || (start.base === null && !isComparable(header, facts.series))) return none;
  const ends = start.base === null ? endsOf(header.series[facts.series]) : [start.base, start.dump];
  if (!ends) return none;
  const [from, to] = ends as [number, number];
  const last = header.dumps[to]!;
  const measure = last.measures.findIndex(({ view }) => view === "space");
  const index = measure >= 0 ? measure : last.default_measure;
  const before = header.dumps[from]!.measures.find(({ name }) => name === last.measures[index]!.name);
  if (last.measures[index]!.unit !== "bytes") return none;
  const label = (place: number): string => dumpName(header.dumps[place]!);
  const total = { value: last.measures[index]!.total - (before?.total ?? 0), from: label(from), to: label(to) };
  const selection = select(profile, { filters: [], allFrames: false });
  const columns = new Columns(profile, selection);
  const state: State = { ...start, dump: to, base: from };
  const after = columns.get(to, index);
  const scene = {
    state,
    selection,
    columns,
    measure: index,
    shown: shownValues(profile, after, null, "after"),
  } as unknown as Scene;
  // The rows are differences between the two dumps. Their verdicts are those of
  // `heaptap leaks` over all iterations, and confirmed growth comes first.
  const ranked = start.base === null ? header.growth?.find((each) => each.series === facts.series) : undefined;
  const order = ["confirmed", "inconclusive", "within-sampling-error"];
  const judged = (row: ChangeRow): GrowthSite | undefined =>
    ranked?.sites
      .filter((site) => site.function === row.label || site.allocators?.includes(row.label))
      .sort((a, b) => order.indexOf(a.verdict) - order.indexOf(b.verdict))[0];
  const rows = changeRows(profile, stage, scene)
    .filter((row) => row.after > row.before)
    .map((row) => {
      const site = judged(row);
      const verdict = site?.verdict ?? (row.certain === false ? "within-sampling-error" : "grew");
      return { label: row.label, value: row.after - row.before, says: site?.says ?? row.label, verdict, key: row.key };
    })
    .filter((row) => row.verdict !== "within-sampling-error")
    .sort((a, b) => Number(b.verdict === "confirmed") - Number(a.verdict === "confirmed") || b.value - a.value)
    .slice(0, 3);
  return { rows, total, why: "" };
}

/** Returns whether a series has at least two comparable dumps. */
export function isComparable(header: Header, series: number): boolean {
  const dumps = header.series[series]?.dumps ?? [];
  const isCumulative = (place: number): boolean => header.dumps[place]!.kind === "cumulative";
  return dumps.length > 1 && dumps.every(isCumulative);
}

/** Returns the process and the heap of a series, as far as known. */
function nameOf({ process, pid, heap }: Series): string {
  return [process || (pid ? `process ${pid}` : ""), heap ?? ""].filter(Boolean).map(sanitize).join(", ");
}

/** Returns the reason why the first screen does not compare dumps. */
export function noGrowthReason(header: Header, dump: number): string {
  const facts = header.dumps[dump];
  if (!facts || header.dumps.length === 1) {
    return "One dump shows unreleased memory, but not growth. To see growth, record labeled snapshots.";
  }
  const series = header.series[facts.series];
  // A single dump of another kind prevents the comparison.
  const kinds = (series?.dumps ?? [dump]).map((place) => header.dumps[place]!.kind);
  if (kinds.includes("at-maximum")) return "These dumps show a heap at its maximum, so their difference is not growth. To see growth, record without --dump-at-max.";
  if (kinds.includes("allocations-only")) return "This heap reports allocations, but not frees. Its unreleased memory and its growth are unknown.";
  const measure = facts.measures[facts.default_measure];
  const name = series ? nameOf(series) : "";
  if ((series?.dumps.length ?? 0) > 1) return `This profile counts ${sanitize(measure?.unit ?? "")}, not unreleased bytes, so its dumps are not compared.`;
  const others = header.series.filter((_, at) => isComparable(header, at));
  const many = header.dumps.length;
  const otherHeaps =
    others.length === 1
      ? ` ${nameOf(others[0]!) || "Another heap"} has several dumps; select it under Heap.`
      : others.length > 1
        ? ` ${others.length} other heaps have several dumps; select one under Heap.`
        : "";
  const restarted = series?.after !== null && series?.after !== undefined ? " The process restarted, and its earlier memory is gone." : "";
  return `The ${many} dumps are of ${header.series.length} different heaps or runs. ${name || "The largest heap"} has only one dump, and growth needs two.${restarted}${otherHeaps}`;
}
