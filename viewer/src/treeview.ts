// Callstacks as a tree table: from the root down, or from the allocation method up.

import { button, h, name } from "./dom";
import type { Cell, Tree } from "./grow";
import { labelOf } from "./flame";
import { libraryName } from "./keys";
import type { Profile } from "./profile";
import type { Scene } from "./scene";
import { Table, type ColumnOf } from "./table";
import { amount, percent, signed } from "./units";

export interface TreeEvents {
  select(cell: Cell): void;
  zoom(cell: Cell): void;
  direction(view: "top-down" | "bottom-up"): void;
}

export class TreeView {
  readonly element: HTMLElement;
  private table: Table<Cell> | null = null;
  private readonly host: HTMLElement;
  private readonly directions: { view: "top-down" | "bottom-up"; button: HTMLButtonElement }[];
  private tree: Tree | null = null;
  private compared = false;
  private readonly open = new WeakSet<Cell>();

  constructor(
    private readonly profile: Profile,
    private readonly events: TreeEvents,
  ) {
    const direction = (view: "top-down" | "bottom-up", label: string, title: string) => ({
      view,
      button: button(label, { title, onclick: () => events.direction(view) }),
    });
    this.directions = [
      direction("top-down", "By callstack", "From the outermost caller to the allocating function"),
      direction("bottom-up", "By allocation method", "From the allocating function to its callers"),
    ];
    this.host = h("div", { class: "fill" });
    this.element = h(
      "div",
      { class: "pane" },
      h(
        "div",
        { class: "bar" },
        h("div", { class: "segments", role: "group", "aria-label": "Order" }, ...this.directions.map((each) => each.button)),
        button("Unfold the largest", { onclick: () => this.unfold() }),
        button("Fold all", { onclick: () => this.fold() }),
      ),
      this.host,
    );
  }

  show(scene: Scene, selected: Cell | null): void {
    const fresh = this.tree !== scene.tree;
    this.tree = scene.tree;
    for (const { view, button } of this.directions) {
      button.setAttribute("aria-pressed", String((scene.state.view === "bottom-up") === (view === "bottom-up")));
    }
    const compared = scene.shown.before !== null;
    if (!this.table || fresh || this.compared !== compared) {
      this.compared = compared;
      this.table = this.make(scene);
      this.host.replaceChildren(this.table.element);
      if (fresh) this.open.add(scene.tree.root);
    }
    for (let at = selected?.parent ?? null; at; at = at.parent) this.open.add(at);
    this.list(selected);
  }

  private make(scene: Scene): Table<Cell> {
    const tree = scene.tree;
    const whole = Math.max(Math.abs(tree.root.after), Math.abs(tree.root.before));
    const columns: ColumnOf<Cell>[] = [
      {
        id: "name",
        title: "Function",
        cell: (cell) => {
          const box = h("span", { class: "with-swatch" });
          const swatch = h("i", { class: "swatch", "aria-hidden": "true" });
          swatch.style.background = scene.palette.color(scene.keys, cell.key, currentTheme());
          box.append(swatch, name(labelOf(scene, cell)));
          return box;
        },
      },
      { id: "total", title: "Total", numeric: true, cell: (cell) => amount(cell.after, scene.unit) },
      { id: "share", title: "Share", numeric: true, cell: (cell) => bar(cell.after, whole) },
    ];
    if (compared(scene)) {
      columns.push(
        { id: "before", title: "Before", numeric: true, cell: (cell) => amount(cell.before, scene.unit) },
        { id: "change", title: "Change", numeric: true, cell: (cell) => signed(cell.after - cell.before, scene.unit) },
      );
    }
    if (scene.state.view !== "bottom-up") {
      columns.push({
        id: "self",
        title: "Self",
        numeric: true,
        cell: (cell) => {
          tree.children(cell);
          return amount(cell.selfAfter, scene.unit);
        },
      });
    }
    columns.push({
      id: "library",
      title: "Library",
      cell: (cell) => {
        const frame = tree.frameAt(cell);
        return frame < 0 || !cell.parent
          ? ""
          : name(libraryName(this.profile, this.profile.functions.library[this.profile.frames.function[frame]!]!));
      },
    });
    return new Table<Cell>(columns, {
      label: scene.state.view === "bottom-up" ? "Callstacks by allocation method" : "Callstacks",
      level: (cell) => {
        const siblings = cell.parent ? tree.children(cell.parent) : [cell];
        return {
          level: cell.depth + 1,
          place: siblings.indexOf(cell),
          of: siblings.length,
          expanded: tree.children(cell).length === 0 ? null : this.open.has(cell),
        };
      },
      toggle: (cell, open) => {
        if (open) this.open.add(cell);
        else this.open.delete(cell);
        this.list(cell);
      },
      select: (cell) => cell.parent && this.events.select(cell),
      activate: (cell) => this.events.zoom(cell),
      empty: "No callstacks.",
    });
  }

  private list(active: Cell | null): void {
    const { tree } = this;
    if (!tree) return;
    const rows: Cell[] = [];
    const rest: Cell[] = [tree.root];
    while (rest.length > 0) {
      const cell = rest.pop()!;
      rows.push(cell);
      if (!this.open.has(cell)) continue;
      const children = tree.children(cell);
      for (let i = children.length - 1; i >= 0; i--) rest.push(children[i]!);
    }
    this.table?.show(rows, active);
  }

  /** Unfolds the path to the largest callstack. */
  private unfold(): void {
    let cell: Cell | undefined = this.tree?.root;
    while (cell && this.tree) {
      this.open.add(cell);
      cell = this.tree.children(cell)[0];
    }
    this.list(null);
  }

  private fold(): void {
    const rest = this.tree ? [this.tree.root] : [];
    while (rest.length > 0) {
      const cell = rest.pop()!;
      if (!this.open.has(cell) && cell.parent) continue;
      if (cell.parent) this.open.delete(cell);
      rest.push(...(cell.children ?? []));
    }
    this.list(null);
  }
}

function compared(scene: Scene): boolean {
  return scene.shown.before !== null;
}

export function currentTheme(): "light" | "dark" {
  const chosen = document.documentElement.dataset["theme"];
  if (chosen === "light" || chosen === "dark") return chosen;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Returns a share as a number with a bar behind it. */
export function bar(part: number, whole: number): HTMLElement {
  const fill = h("i", { "aria-hidden": "true", class: part > 0 && whole > 0 ? null : "none" });
  fill.style.width = `${whole > 0 ? Math.max(0, Math.min(100, (100 * part) / whole)) : 0}%`;
  return h("span", { class: "share" }, fill, h("b", null, percent(part, whole)));
}
