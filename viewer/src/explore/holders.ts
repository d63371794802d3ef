// Paths from GC roots to the objects of a class, merged, as a tree that unfolds.

import { fill, h, name } from "../dom";
import { counted } from "../units";
import { ask, messageOf, type HolderRow, type Table } from "./api";

/** Number of levels that are open at first, as long as nothing forks. */
const MAX_OPEN_LEVELS = 40;

/** Returns the tree, which is asked for when it is opened. */
export function holderTree(of: string, signal: AbortSignal): HTMLElement {
  const list = h("div");
  const fold = h("details", { class: "holders" }, h("summary", null, "Merged paths from GC roots"), list);
  let isKnown = false;
  const load = async (): Promise<void> => {
    if (!fold.open || isKnown) return;
    isKnown = true;
    fill(list, h("p", { class: "soft" }, "Merging paths …"));
    try {
      fill(list, tree(await ask<Table<HolderRow>>("holders", { class: of }, signal)));
    } catch (error) {
      // Opened again, it asks again.
      isKnown = false;
      if (!signal.aborted) fill(list, h("p", { class: "failed", role: "alert" }, name(messageOf(error))));
    }
  };
  fold.addEventListener("toggle", () => void load());
  return fold;
}

function tree({ rows, total, left_out }: Table<HolderRow>): HTMLElement {
  if (rows.length === 0) return h("p", { class: "soft" }, "No object refers to them.");
  const below = new Map<number | null, number[]>();
  rows.forEach(({ above }, at) => {
    const others = below.get(above);
    if (others) others.push(at);
    else below.set(above, [at]);
  });
  const level = (above: number | null, open: number): HTMLElement =>
    h(
      "ul",
      null,
      ...(below.get(above) ?? []).map((at, _, { length }) => {
        const row = rows[at]!;
        const words = [h("code", null, name(row.name)), ` ${counted(row.count, "object")}`, row.root !== null && h("span", { class: "soft" }, ` GC root: ${row.root}`)];
        if (!below.has(at)) return h("li", null, ...words);
        const isOpen = length === 1 && open > 0;
        return h("li", null, h("details", { open: isOpen }, h("summary", null, ...words), level(at, isOpen ? open - 1 : 0)));
      }),
    );
  const left = total + (left_out ?? 0) - rows.length;
  const note = `${counted(rows.length, "reference")}; below each are the references to its objects.${left > 0 ? ` ${counted(left, "more reference")} are not shown.` : ""}`;
  return h("div", null, h("p", { class: "soft" }, note), level(null, MAX_OPEN_LEVELS));
}
