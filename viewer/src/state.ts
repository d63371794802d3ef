// What is looked at, as it stands behind the # of the address: so that a link shows it, the back
// button returns to it, and junk there shows the beginning. Frames are named by hashes of their
// names, since ids shift from one report to the next.

import { LONGEST_PATTERN, MOST_FILTERS } from "./filter";
import type { Grouping } from "./keys";
import type { DiffWidth } from "./values";

export const TABS = ["flame", "tree", "functions", "libraries", "changes", "java", "suspects", "info"] as const;
export type Tab = (typeof TABS)[number];

export type ViewKind = "top-down" | "bottom-up" | "sandwich";

export interface State {
  tab: Tab;
  view: ViewKind;
  /** Places in the list of dumps; -1 where there are none. */
  dump: number;
  base: number | null;
  /** Name of the measure; empty: the dump's default. */
  metric: string;
  /** Chips, as they are typed. */
  filters: string[];
  by: Grouping;
  allFrames: boolean;
  foldRecursion: boolean;
  foldChains: boolean;
  /** Flames instead of icicles. */
  up: boolean;
  width: DiffWidth;
  /** Hashes of keys from the root: what is zoomed to, what is selected. */
  zoom: number[];
  selected: number[];
  search: string;
  /** Which Java heap. */
  java: number;
}

const VIEWS: ViewKind[] = ["top-down", "bottom-up", "sandwich"];
const GROUPINGS: Grouping[] = ["function", "line", "library", "package"];
const WIDTHS: DiffWidth[] = ["after", "before", "change"];

/** Longest address that is read, deepest path that is kept. */
const LONGEST = 20_000;
const DEEPEST = 300;

export function encodeState(state: State, start: State): string {
  const fields: [string, string][] = [["v", "1"]];
  const add = (key: string, value: string, usual: string): void => {
    if (value !== usual) fields.push([key, value]);
  };
  add("tab", state.tab, start.tab);
  add("view", state.view, start.view);
  add("dump", String(state.dump), String(start.dump));
  add("base", String(state.base ?? "none"), String(start.base ?? "none"));
  add("metric", state.metric, start.metric);
  for (const filter of state.filters) fields.push(["f", filter]);
  add("by", state.by, start.by);
  add("all", state.allFrames ? "1" : "0", start.allFrames ? "1" : "0");
  add("rec", state.foldRecursion ? "1" : "0", start.foldRecursion ? "1" : "0");
  add("chain", state.foldChains ? "1" : "0", start.foldChains ? "1" : "0");
  add("up", state.up ? "1" : "0", start.up ? "1" : "0");
  add("w", state.width, start.width);
  add("z", path(state.zoom), "");
  add("sel", path(state.selected), "");
  add("q", state.search, "");
  add("java", String(state.java), String(start.java));
  return `#${fields.map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join("&")}`;
}

function path(hashes: number[]): string {
  return hashes.slice(0, DEEPEST).map((hash) => hash.toString(36)).join(".");
}

function readPath(text: string): number[] {
  const hashes: number[] = [];
  for (const part of text.split(".").slice(0, DEEPEST)) {
    const hash = /^[0-9a-z]{1,7}$/.test(part) ? parseInt(part, 36) : NaN;
    if (!(hash >= 0 && hash <= 0xffffffff)) return [];
    hashes.push(hash);
  }
  return hashes;
}

/** What lies behind the #, with whatever is missing or makes no sense taken from `start`. */
export function decodeState(hash: string, start: State, dumps: number, javas: number): State {
  const state: State = { ...start, filters: [], zoom: [], selected: [], search: "" };
  if (hash.length > LONGEST) return { ...start };
  const fields = new Map<string, string[]>();
  for (const field of hash.replace(/^#/, "").split("&")) {
    const at = field.indexOf("=");
    if (at < 0) continue;
    let value: string;
    try {
      value = decodeURIComponent(field.slice(at + 1));
    } catch {
      continue;
    }
    const key = field.slice(0, at);
    fields.set(key, [...(fields.get(key) ?? []), value]);
  }
  if (fields.get("v")?.[0] !== "1") return { ...start };
  const one = (key: string): string | undefined => fields.get(key)?.[0];
  const pick = <T extends string>(key: string, among: readonly T[], usual: T): T =>
    among.find((value) => value === one(key)) ?? usual;
  const flag = (key: string, usual: boolean): boolean =>
    one(key) === "1" ? true : one(key) === "0" ? false : usual;
  const index = (key: string, count: number): number | undefined => {
    const text = one(key);
    const value = text && /^\d{1,9}$/.test(text) ? Number(text) : NaN;
    return value < count ? value : undefined;
  };
  state.tab = pick("tab", TABS, start.tab);
  state.view = pick("view", VIEWS, start.view);
  state.dump = index("dump", dumps) ?? start.dump;
  state.base = one("base") === "none" ? null : (index("base", dumps) ?? start.base);
  state.metric = (one("metric") ?? start.metric).slice(0, 200);
  state.filters = (fields.get("f") ?? [])
    .filter((text) => text.length <= LONGEST_PATTERN + 20)
    .slice(0, MOST_FILTERS);
  state.by = pick("by", GROUPINGS, start.by);
  state.allFrames = flag("all", start.allFrames);
  state.foldRecursion = flag("rec", start.foldRecursion);
  state.foldChains = flag("chain", start.foldChains);
  state.up = flag("up", start.up);
  state.width = pick("w", WIDTHS, start.width);
  state.zoom = readPath(one("z") ?? "");
  state.selected = readPath(one("sel") ?? "");
  state.search = (one("q") ?? "").slice(0, LONGEST_PATTERN);
  state.java = index("java", javas) ?? start.java;
  return state;
}
