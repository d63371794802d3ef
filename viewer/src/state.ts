// State of the page, stored in the address after `#`. So links and the back button restore it; invalid
// addresses show the initial state. Frames are stored as hashes of their names, because IDs differ
// between reports.

import { heapOf, isPlace } from "./explore/place";
import { MAX_PATTERN_LENGTH, MAX_FILTERS } from "./filter";
import type { Grouping } from "./keys";
import type { DiffWidth } from "./values";

export const TABS = ["flame", "tree", "functions", "libraries", "changes", "java", "info"] as const;
export type Tab = (typeof TABS)[number];

export type ViewKind = "top-down" | "bottom-up" | "sandwich";

export interface State {
  tab: Tab;
  view: ViewKind;
  /** Indexes in the list of dumps; -1 without dumps. */
  dump: number;
  base: number | null;
  /** Name of the measure; empty for the default of the dump. */
  metric: string;
  /** Filters as typed. */
  filters: string[];
  by: Grouping;
  allFrames: boolean;
  foldRecursion: boolean;
  foldChains: boolean;
  /** Whether flames are shown instead of icicles. */
  up: boolean;
  width: DiffWidth;
  /** Paths of the zoomed and of the selected cell: hashes of keys from the root. */
  zoom: number[];
  selected: number[];
  search: string;
  /** Index of the Java heap. */
  java: number;
}

const VIEWS: ViewKind[] = ["top-down", "bottom-up", "sandwich"];
const GROUPINGS: Grouping[] = ["function", "line", "library", "package"];
const WIDTHS: DiffWidth[] = ["after", "before", "change"];

/** Maximum length of an address, and maximum depth of a path in it. */
const MAX_ADDRESS_LENGTH = 20_000;
const MAX_PATH_DEPTH = 300;

export function encodeState(state: State, start: State): string {
  const fields: [string, string][] = [["v", "1"]];
  const add = (key: string, value: string, fallback: string): void => {
    if (value !== fallback) fields.push([key, value]);
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
  add("z", formatPath(state.zoom), "");
  add("sel", formatPath(state.selected), "");
  add("q", state.search, "");
  add("java", String(state.java), String(start.java));
  return `#${fields.map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join("&")}`;
}

function formatPath(hashes: number[]): string {
  return hashes.slice(0, MAX_PATH_DEPTH).map((hash) => hash.toString(36)).join(".");
}

function readPath(text: string): number[] {
  const hashes: number[] = [];
  for (const part of text.split(".").slice(0, MAX_PATH_DEPTH)) {
    const hash = /^[0-9a-z]{1,7}$/.test(part) ? parseInt(part, 36) : NaN;
    if (!(hash >= 0 && hash <= 0xffffffff)) return [];
    hashes.push(hash);
  }
  return hashes;
}

/** Returns a state at a place in a Java heap; the rest is as it was. */
export function atPlace(state: State, hash: string, start: State, javas: number): State {
  const heap = heapOf(hash) ?? start.java;
  return { ...state, tab: "java", java: heap < javas ? heap : start.java };
}

/** Parses the part of the address after `#`. Missing and invalid values are taken from `start`. */
export function decodeState(hash: string, start: State, dumps: number, javas: number): State {
  if (isPlace(hash)) return atPlace(start, hash, start, javas);
  const state: State = { ...start, filters: [], zoom: [], selected: [], search: "" };
  if (hash.length > MAX_ADDRESS_LENGTH) return { ...start };
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
  const first = (key: string): string | undefined => fields.get(key)?.[0];
  const pick = <T extends string>(key: string, among: readonly T[], fallback: T): T =>
    among.find((value) => value === first(key)) ?? fallback;
  const flag = (key: string, fallback: boolean): boolean =>
    first(key) === "1" ? true : first(key) === "0" ? false : fallback;
  const indexOf = (key: string, count: number): number | undefined => {
    const text = first(key);
    const value = text && /^\d{1,9}$/.test(text) ? Number(text) : NaN;
    return value < count ? value : undefined;
  };
  state.tab = pick("tab", TABS, start.tab);
  state.view = pick("view", VIEWS, start.view);
  state.dump = indexOf("dump", dumps) ?? start.dump;
  state.base = first("base") === "none" ? null : (indexOf("base", dumps) ?? start.base);
  state.metric = (first("metric") ?? start.metric).slice(0, 200);
  state.filters = (fields.get("f") ?? [])
    .filter((text) => text.length <= MAX_PATTERN_LENGTH + 20)
    .slice(0, MAX_FILTERS);
  state.by = pick("by", GROUPINGS, start.by);
  state.allFrames = flag("all", start.allFrames);
  state.foldRecursion = flag("rec", start.foldRecursion);
  state.foldChains = flag("chain", start.foldChains);
  state.up = flag("up", start.up);
  state.width = pick("w", WIDTHS, start.width);
  state.zoom = readPath(first("z") ?? "");
  state.selected = readPath(first("sel") ?? "");
  state.search = (first("q") ?? "").slice(0, MAX_PATTERN_LENGTH);
  state.java = indexOf("java", javas) ?? start.java;
  return state;
}
