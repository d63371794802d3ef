// What holds the objects of a class: all paths to roots, merged, as a tree that unfolds.

import { h, name } from "../dom";
import { counted, thousands } from "../units";
import { ask, type HolderRow } from "./api";

/** Number of levels that are open at first, as long as nothing forks. */
const OPEN = 40;

/** Returns the tree, which is asked for when it is opened. */
export function holderTree(of: string, signal: AbortSignal): HTMLElement {
  const list = h("div", null, h("p", { class: "soft" }, "Merging paths …"));
  const fold = h("details", { class: "holders" }, h("summary", null, "What holds them: paths to GC roots, merged"), list);
  const fill = async (): Promise<void> => {
    try {
      list.replaceChildren(tree(await ask<HolderRow[]>("holders", { class: of }, signal)));
    } catch (error) {
      if (!signal.aborted) list.replaceChildren(h("p", { class: "failed", role: "alert" }, String(error)));
    }
  };
  fold.addEventListener("toggle", () => void fill(), { once: true });
  return fold;
}

function tree(rows: HolderRow[]): HTMLElement {
  if (rows.length === 0) return h("p", { class: "soft" }, "Only GC roots hold them, or nothing.");
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
  return h("div", null, h("p", { class: "soft" }, `${thousands(rows.length)} references; each refers to the objects of the one above.`), level(null, OPEN));
}
