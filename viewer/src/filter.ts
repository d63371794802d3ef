// Filters as typed: chips such as `SS: decode` or `HF: /^std::/`, in the syntax of Perfetto. select.ts
// applies them to callstacks.

import { thousands } from "./units";

/**
 * - SS show stack: only callstacks with such a frame (pprof's focus)
 * - HS hide stack: only callstacks without such a frame (pprof's ignore)
 * - SFF show from frame: the outermost such frame and its callees (pprof's show_from)
 * - HF hide frame: removes such frames, keeps their callees (pprof's hide)
 * - P pivot: callers and callees of the outermost such frame
 * - CF collapse into frame: counts the callees as part of such frames
 */
export type FilterKind = "SS" | "HS" | "SFF" | "HF" | "P" | "CF";

export interface Pattern {
  /** As typed: `text`, `/re/` or `/re/i`, with an optional prefix `lib:`. */
  source: string;
  /** Whether it matches library paths instead of function names. */
  library: boolean;
  /** Literal in lower case; null for a regular expression. */
  literal: string | null;
  regex: { source: string; flags: string } | null;
}

export interface Filter {
  kind: FilterKind;
  pattern: Pattern;
}

export const FILTER_TITLES: Record<FilterKind, string> = {
  SS: "Show stack",
  HS: "Hide stack",
  SFF: "Show from frame",
  HF: "Hide frame",
  P: "Pivot",
  CF: "Collapse into frame",
};

const ALIASES: Record<string, FilterKind> = {
  ss: "SS",
  "show stack": "SS",
  focus: "SS",
  hs: "HS",
  "hide stack": "HS",
  ignore: "HS",
  sff: "SFF",
  "show from frame": "SFF",
  "show-from": "SFF",
  show_from: "SFF",
  hf: "HF",
  "hide frame": "HF",
  hide: "HF",
  p: "P",
  pivot: "P",
  cf: "CF",
  collapse: "CF",
};

/** Maximum length of a pattern, typed or from a link, in UTF-16 code units. */
export const MAX_PATTERN_LENGTH = 1000;

/** Maximum number of filters: select.ts has one bit for each. */
export const MAX_FILTERS = 24;

/** Parses a pattern. Returns the reason if it is invalid. */
export function parsePattern(text: string): Pattern | { error: string } {
  const source = text.trim();
  if (source.length > MAX_PATTERN_LENGTH) return { error: `the pattern is longer than ${thousands(MAX_PATTERN_LENGTH)} characters` };
  const library = /^lib:/i.test(source);
  const body = library ? source.slice(4).trim() : source;
  if (!body) return { error: "the pattern is empty" };
  const form = /^\/(.*)\/(i?)$/s.exec(body);
  if (!form) return { source, library, literal: body.toLowerCase(), regex: null };
  const [, expression = "", flags = ""] = form;
  try {
    new RegExp(expression, flags);
  } catch (error) {
    const reason = String((error as Error).message).replace(/^Invalid regular expression: /, "");
    return { error: `invalid regular expression: ${reason}` };
  }
  return { source, library, literal: null, regex: { source: expression, flags } };
}

/** Parses a filter `KIND: pattern`. Text without a kind is SS, as in Perfetto. */
export function parseFilter(text: string): Filter | { error: string } {
  const form = /^\s*([a-z][a-z_ -]*?)\s*:\s*(?!:)(.*)$/is.exec(text);
  const kind = form ? ALIASES[form[1]!.toLowerCase()] : undefined;
  const pattern = parsePattern(kind ? form![2]! : text);
  return "error" in pattern ? pattern : { kind: kind ?? "SS", pattern };
}

/** Returns the filter as typed. */
export function formatFilter(filter: Filter): string {
  return `${filter.kind}: ${filter.pattern.source}`;
}

/** Returns the pattern that matches exactly this name. */
export function patternForName(name: string): Pattern {
  const source = `/^${name.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")}$/`;
  const parsed = parsePattern(source);
  // The start of a name replaces a pattern beyond the limit.
  return "error" in parsed ? (parsePattern(name.slice(0, 200)) as Pattern) : parsed;
}
