// All keys and filters on one sheet.

import { button, h } from "./dom";

const KEYS: [string, string][] = [
  ["/", "search; text, /regular expression/ or /…/i; lib:text looks at libraries"],
  ["n  N", "next, previous match"],
  ["arrows", "move between boxes: caller, callee, siblings"],
  ["Enter", "zoom to the selected box"],
  ["+  -  0", "zoom in to the heaviest callee, out by one, out to all"],
  ["Esc", "close what is open, end the search, zoom out"],
  ["u  U", "undo, redo (also Ctrl+Z, Ctrl+Shift+Z)"],
  ["b", "bottom-up and back"],
  ["i", "flames and icicles"],
  ["r", "fold recursion"],
  ["a", "allocator and runtime frames too"],
  ["[  ]", "previous, next dump; with Shift (braces) stretches a difference"],
  ["1 … 8", "pages, in the order of their tabs"],
  ["?", "this sheet"],
];

const ON_BOX: [string, string][] = [
  ["f", "start from this function (SFF)"],
  ["F", "only stacks with it (SS)"],
  ["d", "drop its stacks (HS)"],
  ["m", "merge it into its caller (HF)"],
  ["c", "collapse what it calls (CF)"],
  ["C", "hide the frames of its library (HF lib)"],
  ["p", "pivot: callers above, callees below (P)"],
  ["y", "copy its stack, folded"],
];

const ON_TIMELINE: [string, string][] = [
  ["←  →", "the reading before, after; with Shift marks a stretch"],
  ["PgUp  PgDn", "the collection, dump or label before, after"],
  ["Enter", "looks at the marked stretch; else shows the nearest dump"],
  ["+  -  0", "closer, further away, the whole recording"],
];

const FILTERS: [string, string][] = [
  ["SS: text", "show stack: only stacks with such a frame; also focus:"],
  ["HS: text", "hide stack: none with such a frame; also ignore:"],
  ["SFF: text", "show from frame: from the outermost such frame on"],
  ["HF: text", "hide frame: the frame goes, what it calls stays; also hide:"],
  ["P: text", "pivot on such frames"],
  ["CF: text", "collapse into such frames all that they call"],
  ["text", "the same as SS: text; letters match in either case"],
  ["/re/  /re/i", "a regular expression; with i in either case"],
  ["lib:text", "the library's path instead of the function's name"],
];

function list(rows: [string, string][]): HTMLElement {
  return h("dl", { class: "keys" }, ...rows.flatMap(([key, words]) => [h("dt", null, h("kbd", null, key)), h("dd", null, words)]));
}

export function helpSheet(): HTMLDialogElement {
  const dialog = h("dialog", { class: "help", "aria-labelledby": "heaptap-help-title" });
  dialog.append(
    h("header", null, h("h2", { id: "heaptap-help-title" }, "Keys and filters"), button("Close", { onclick: () => dialog.close() })),
    h(
      "div",
      { class: "columns", tabindex: 0, role: "region", "aria-label": "All keys and filters" },
      h("section", null, h("h3", null, "Everywhere"), list(KEYS)),
      h("section", null, h("h3", null, "On the selected box"), list(ON_BOX), h("h3", null, "On the memory over time"), list(ON_TIMELINE), h("h3", null, "Filters"), list(FILTERS)),
    ),
  );
  return dialog;
}
