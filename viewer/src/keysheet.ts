// A dialog that lists keys.

import { button, h } from "./dom";

/** Key, and what it does. */
export type KeyRow = [key: string, effect: string];
type Section = [heading: string, rows: KeyRow[]];

function list(rows: KeyRow[]): HTMLElement {
  return h("dl", { class: "keys" }, ...rows.flatMap(([key, effect]) => [h("dt", null, h("kbd", null, key)), h("dd", null, effect)]));
}

/** Returns a dialog with sections in columns. */
export function keySheet(title: string, ...columns: Section[][]): HTMLDialogElement {
  const dialog = h("dialog", { class: "help", "aria-labelledby": "heaptap-help-title" });
  const sections = (column: Section[]) => h("section", null, ...column.flatMap(([heading, rows]) => [h("h3", null, heading), list(rows)]));
  dialog.append(
    h("header", null, h("h2", { id: "heaptap-help-title" }, title), button("Close", { onclick: () => dialog.close() })),
    h("div", { class: "columns", tabindex: 0, role: "region", "aria-label": title }, ...columns.map(sections)),
  );
  return dialog;
}
