// Filters as people type them: chips such as `SS: decode` or `HF: /^std::/`, in Perfetto's
// spelling. What a chip means to a call stack stands in select.ts.

import { thousands } from "./units";

/**
 * - SS show stack: only stacks with such a frame (pprof's focus)
 * - HS hide stack: no stack with such a frame (pprof's ignore)
 * - SFF show from frame: only what such a frame calls, from the outermost on (show_from)
 * - HF hide frame: the frame goes, what it calls stays (pprof's hide)
 * - P pivot: callers and callees of the outermost such frame
 * - CF collapse frame: such a frame takes all that it calls as its own
 */
export type FilterKind = "SS" | "HS" | "SFF" | "HF" | "P" | "CF";

export interface Pattern {
  /** What was typed: `text`, `/re/` or `/re/i`, either behind `lib:`. */
  source: string;
  /** Looks at the library's path, not the function's name. */
  library: boolean;
  /** The literal in lower case, or the parts of the regular expression. */
  literal: string | null;
  regex: { source: string; flags: string } | null;
}

export interface Filter {
  kind: FilterKind;
  pattern: Pattern;
}

export const FILTER_WORDS: Record<FilterKind, string> = {
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

/** Longest pattern that is taken, typed or from a link. */
export const LONGEST_PATTERN = 1000;

/** Most chips that apply at once. */
export const MOST_FILTERS = 24;

/** A pattern, or why it is none. */
export function parsePattern(text: string): Pattern | { error: string } {
  const source = text.trim();
  if (source.length > LONGEST_PATTERN) return { error: `the pattern is longer than ${thousands(LONGEST_PATTERN)} characters` };
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

/** A chip from `KIND: pattern`; bare text shows stacks, as in Perfetto. */
export function parseFilter(text: string): Filter | { error: string } {
  const form = /^\s*([a-z][a-z_ -]*?)\s*:\s*(?!:)(.*)$/is.exec(text);
  const kind = form ? ALIASES[form[1]!.toLowerCase()] : undefined;
  const pattern = parsePattern(kind ? form![2]! : text);
  return "error" in pattern ? pattern : { kind: kind ?? "SS", pattern };
}

/** A chip as it is typed. */
export function spell(filter: Filter): string {
  return `${filter.kind}: ${filter.pattern.source}`;
}

/** The pattern that matches one name and no other. */
export function patternOf(name: string): Pattern {
  const source = `/^${name.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")}$/`;
  const parsed = parsePattern(source);
  // A name beyond the limit is looked for by its beginning.
  return "error" in parsed ? (parsePattern(name.slice(0, 200)) as Pattern) : parsed;
}
