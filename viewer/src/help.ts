// Dialog of the report that lists all keys and filters.

import { EXPLORER_KEYS } from "./explore/help";
import { keySheet, type KeyRow } from "./keysheet";

const KEYS: KeyRow[] = [
  ["/", "Search: text, /regular expression/ or /…/i; lib:text searches library paths"],
  ["n  N", "Next or previous match"],
  ["Arrows", "Move between boxes: caller, callee, siblings"],
  ["Enter", "Zoom in on the selected box"],
  ["+  -  0", "Zoom in on the largest callee, zoom out one level, zoom out fully"],
  ["Esc", "Close the dialog, clear the search, or zoom out"],
  ["u  U", "Undo, redo (also Ctrl+Z, Ctrl+Shift+Z)"],
  ["b", "Switch between top-down and bottom-up"],
  ["i", "Switch between icicles and flames"],
  ["r", "Fold or unfold recursion"],
  ["a", "Show or hide allocator and runtime frames"],
  ["[  ]", "Previous or next dump; with Shift (braces), extend the difference"],
  ["1 … 8", "Open a tab by its position"],
  ["?", "Show this help"],
];

const ON_BOX: KeyRow[] = [
  ["f", "Show only this function and its callees (SFF)"],
  ["F", "Show only callstacks that contain it (SS)"],
  ["d", "Hide callstacks that contain it (HS)"],
  ["m", "Hide its frames; its callees move to its callers (HF)"],
  ["c", "Count its callees as part of it (CF)"],
  ["C", "Hide the frames of its library (HF lib)"],
  ["p", "Pivot: callers above, callees below (P)"],
  ["y", "Copy its callstack as folded text"],
];

const ON_TIMELINE: KeyRow[] = [
  ["←  →", "Previous or next reading; with Shift, select a time range"],
  ["PgUp  PgDn", "Previous or next collection, dump or label"],
  ["Enter", "Zoom in on the selected time range, or show the nearest dump"],
  ["+  -  0", "Zoom in, zoom out, show the whole recording"],
];

const FILTERS: KeyRow[] = [
  ["SS: text", "Show stack: only callstacks with such a frame; also focus:"],
  ["HS: text", "Hide stack: only callstacks without such a frame; also ignore:"],
  ["SFF: text", "Show from frame: start at the outermost such frame; also show_from:"],
  ["HF: text", "Hide frame: remove such frames, keep their callees; also hide:"],
  ["P: text", "Pivot: callers and callees of the outermost such frame"],
  ["CF: text", "Collapse into frame: count callees as part of such frames"],
  ["text", "Same as SS: text; not case-sensitive"],
  ["/re/  /re/i", "Regular expression; case-sensitive unless i is added"],
  ["lib:text", "Match library paths instead of function names"],
];

export function helpSheet(): HTMLDialogElement {
  return keySheet(
    "Keys and filters",
    [
      ["Everywhere", KEYS],
      ["On the selected box", ON_BOX],
    ],
    [
      ["In Memory over time", ON_TIMELINE],
      ["In Java heap", EXPLORER_KEYS],
      ["Filters", FILTERS],
    ],
  );
}
