// Dialog that lists all keys and filters.

import { button, h } from "./dom";

const KEYS: [string, string][] = [
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

const ON_BOX: [string, string][] = [
  ["f", "Show only this function and its callees (SFF)"],
  ["F", "Show only callstacks that contain it (SS)"],
  ["d", "Hide callstacks that contain it (HS)"],
  ["m", "Hide its frames; its callees move to its callers (HF)"],
  ["c", "Count its callees as part of it (CF)"],
  ["C", "Hide the frames of its library (HF lib)"],
  ["p", "Pivot: callers above, callees below (P)"],
  ["y", "Copy its callstack as folded text"],
];

const ON_TIMELINE: [string, string][] = [
  ["←  →", "Previous or next reading; with Shift, select a time range"],
  ["PgUp  PgDn", "Previous or next collection, dump or label"],
  ["Enter", "Zoom in on the selected time range, or show the nearest dump"],
  ["+  -  0", "Zoom in, zoom out, show the whole recording"],
];

const FILTERS: [string, string][] = [
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

function list(rows: [key: string, effect: string][]): HTMLElement {
  return h("dl", { class: "keys" }, ...rows.flatMap(([key, effect]) => [h("dt", null, h("kbd", null, key)), h("dd", null, effect)]));
}

export function helpSheet(): HTMLDialogElement {
  const dialog = h("dialog", { class: "help", "aria-labelledby": "heaptap-help-title" });
  dialog.append(
    h("header", null, h("h2", { id: "heaptap-help-title" }, "Keys and filters"), button("Close", { onclick: () => dialog.close() })),
    h(
      "div",
      { class: "columns", tabindex: 0, role: "region", "aria-label": "All keys and filters" },
      h("section", null, h("h3", null, "Everywhere"), list(KEYS), h("h3", null, "On the selected box"), list(ON_BOX)),
      h("section", null, h("h3", null, "In Memory over time"), list(ON_TIMELINE), h("h3", null, "Filters"), list(FILTERS)),
    ),
  );
  return dialog;
}
