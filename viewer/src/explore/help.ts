// The keys of the heap explorer.

import { button } from "../dom";
import { keySheet, type KeyRow } from "../keysheet";

export const EXPLORER_KEYS: KeyRow[] = [
  ["/", "Search in the view, or open an object by its ID; Enter moves to what is found"],
  ["Arrows", "Move between the boxes of a treemap or flame graph; Enter opens one"],
  ["b", "Go from an object to the next big drop of retained size"],
  ["Ctrl+Enter", "Run the SQL statement"],
  ["Esc", "Leave the search field"],
];

/** Makes the button that opens the list of keys, and the dialog. */
export function keyHelp(): { opener: HTMLElement; dialog: HTMLDialogElement } {
  const dialog = keySheet("Keys", [["Everywhere", [...EXPLORER_KEYS, ["?", "Show this help"]]]]);
  const opener = button("?", { class: "round", title: "Keys (?)", "aria-label": "Keys", onclick: () => dialog.showModal() });
  return { opener, dialog };
}
