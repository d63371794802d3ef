// Where a report opens, and what it says has grown.

import type { GrowthSite, Header } from "./format";
import type { Profile } from "./profile";
import type { Stage } from "./scene";
import { changeRows, type ChangeRow } from "./changes";
import { select } from "./select";
import { Columns, shownValues } from "./values";
import type { Scene } from "./scene";
import type { State, Tab } from "./state";
import type { Grown, Total } from "./summary";

export const TAB_TITLES: Record<Tab, string> = {
  flame: "Flame graph",
  tree: "Call stacks",
  functions: "Functions",
  libraries: "Libraries",
  changes: "Difference",
  java: "Java heap",
  suspects: "Leak suspects",
  info: "Info",
};

export function availableTabs(header: Header): Tab[] {
  const tabs: Tab[] = [];
  if (header.dumps.length > 0) tabs.push("flame", "tree", "functions", "libraries");
  if (header.dumps.length > 1) tabs.push("changes");
  if (header.java && header.java.length > 0) tabs.push("java", "suspects");
  tabs.push("info");
  return tabs;
}

/**
 * The last dump of the heap that holds most, of several recordings of the last one; a page made for
 * a difference opens on that.
 */
export function firstState(header: Header, tabs: Tab[]): State {
  let dump = -1;
  let most = -Infinity;
  const recorded = header.timelines?.[header.timelines.length - 1];
  const begin = !recorded ? 0 : recorded.to === header.dumps.length ? recorded.from : recorded.to;
  for (const series of header.series) {
    const last = series.dumps[series.dumps.length - 1];
    if (last === undefined || (last < begin && begin < header.dumps.length)) continue;
    const facts = header.dumps[last]!;
    const measure = facts.measures[facts.default_measure];
    const total = measure?.unit === "bytes" ? measure.total : 0;
    if (total > most) {
      most = total;
      dump = last;
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
    // Of two heaps that are compared the page opens on the one that grew.
    java: Math.max(0, (header.java ?? []).findIndex((heap) => heap.compared_with)),
  };
}

/** What grew over the series of the first screen, or between the two sides of a difference. */
export function growth(
  profile: Profile,
  stage: Stage,
  start: State,
): { rows: Grown[]; total: Total | null } {
  const { header } = profile;
  const facts = header.dumps[start.dump];
  const none = { rows: [], total: null };
  if (!facts) return none;
  const dumps = header.series[facts.series]?.dumps ?? [];
  const from = start.base ?? (dumps.length > 1 ? dumps[0]! : null);
  const to = start.base === null ? dumps[dumps.length - 1] : start.dump;
  if (from === null || to === undefined) return none;
  const last = header.dumps[to]!;
  const measure = last.measures.findIndex(({ view }) => view === "space");
  const index = measure >= 0 ? measure : last.default_measure;
  const before = header.dumps[from]!.measures.find(({ name }) => name === last.measures[index]!.name);
  if (last.measures[index]!.unit !== "bytes") return none;
  const label = (place: number): string => header.dumps[place]!.label ?? `#${header.dumps[place]!.number}`;
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
  // `heaptap leaks` judges the rounds between the dumps: its verdicts stand beside what differs
  // between the two of the headline, and what grows for certain comes first.
  const ranked = start.base === null ? header.growth?.find((each) => each.series === facts.series) : undefined;
  const order = ["grows", "cant-tell", "within-noise"];
  const judged = (row: ChangeRow): GrowthSite | undefined =>
    ranked?.sites
      .filter((site) => site.function === row.label)
      .sort((a, b) => order.indexOf(a.verdict) - order.indexOf(b.verdict))[0];
  const rows = changeRows(profile, stage, scene)
    .filter((row) => row.after > row.before)
    .map((row) => {
      const site = judged(row);
      const verdict = site?.verdict ?? (row.certain === false ? "within-noise" : "grew");
      return { label: row.label, value: row.after - row.before, says: site?.says ?? row.label, verdict, key: row.key };
    })
    .sort((a, b) => Number(b.verdict === "grows") - Number(a.verdict === "grows") || b.value - a.value)
    .slice(0, 3);
  return { rows, total };
}
