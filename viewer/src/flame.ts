// Flame graph: a canvas of the size of the visible part of the rows, with its own scroll bar. It draws
// the layout of layout.ts; its owner handles clicks and keys. For screen readers, a tree grid contains
// the rows around the selected box.

import { h, fill } from "./dom";
import { pathOf, type Cell, type Tree } from "./grow";
import { layout, layoutSandwich, type Box, type Layout } from "./layout";
import { changeColor, colors, type Colors, type Theme } from "./palette";
import type { Scene, Stage } from "./scene";
import { amount, counted, percent, signed } from "./units";

export const ROW = 20;
const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
/** Maximum numbers of siblings and of children in the tree grid. */
const MAX_LISTED = 40;

export interface FlameEvents {
  zoom(cell: Cell): void;
  select(cell: Cell): void;
  hover(box: Box | null, x: number, y: number): void;
  menu(cell: Cell, x: number, y: number): void;
}

export class Flame {
  readonly element: HTMLElement;
  private readonly scroller: HTMLElement;
  private readonly space: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  private readonly rowsElement: HTMLElement;
  private scene: Scene | null = null;
  private zoomed: Cell | null = null;
  private selected: Cell | null = null;
  private laid: Layout = { rows: [], focus: 0, boxes: 0 };
  private hits: Uint8Array | null = null;
  private hovered: Box | null = null;
  private theme: Theme = "light";
  private pending = 0;
  private tallest = 0;
  private readonly widths = new Map<string, number>();
  private hatches: { key: string; more: CanvasPattern; less: CanvasPattern } | null = null;
  /** Duration of the last layout and drawing in ms, for tests. */
  lastFrame = 0;

  constructor(
    private readonly stage: Stage,
    private readonly events: FlameEvents,
  ) {
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.space = h("div", { class: "flame-space", role: "presentation" }, this.canvas);
    this.rowsElement = h("div", { class: "off-screen", role: "rowgroup" });
    this.scroller = h(
      "div",
      { class: "flame-scroll", role: "treegrid", tabindex: 0, "aria-label": "Flame graph" },
      this.space,
      this.rowsElement,
    );
    this.element = h("div", { class: "flame" }, this.scroller);
    this.scroller.addEventListener("scroll", () => this.redraw(), { passive: true });
    new ResizeObserver(() => this.relayout()).observe(this.scroller);
    this.canvas.addEventListener("mousemove", (event) => this.point(event));
    this.canvas.addEventListener("mouseleave", () => this.leave());
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.canvas.addEventListener("contextmenu", (event) => {
      const box = this.boxAt(event.offsetX, event.offsetY);
      if (!box || box.merged > 0) return;
      event.preventDefault();
      this.events.menu(box.cell, event.clientX, event.clientY);
    });
  }

  /** Shows a scene; `hits` is 1 for each key that the search matches. */
  show(scene: Scene, zoomed: Cell, selected: Cell | null, hits: Uint8Array | null, theme: Theme): void {
    const moved = this.scene?.tree !== scene.tree || this.zoomed !== zoomed || this.scene.state.up !== scene.state.up;
    this.scene = scene;
    this.zoomed = zoomed;
    this.selected = selected;
    this.hits = hits;
    this.theme = theme;
    this.relayout();
    if (moved) this.scrollToZoom();
    this.describe();
  }

  /** Returns the visible cells that match the search, widest first. */
  matches(): Cell[] {
    const { hits } = this;
    if (!hits) return [];
    const boxes: Box[] = [];
    for (const row of this.laid.rows) {
      for (const box of row) if (box.merged === 0 && box.cell.key >= 0 && hits[box.cell.key]) boxes.push(box);
    }
    return boxes.sort((a, b) => b.width - a.width).map(({ cell }) => cell);
  }

  /** Moves the keyboard focus to the graph. */
  focus(): void {
    this.scroller.focus({ preventScroll: true });
  }

  /** Returns the number of boxes, for tests. */
  get boxes(): number {
    return this.laid.boxes;
  }

  /** Returns the middle of a cell's box in the page, for tests. */
  positionOf(cell: Cell): { x: number; y: number } | null {
    const at = this.find(cell);
    if (!at) return null;
    const rect = this.canvas.getBoundingClientRect();
    const y = this.yOf(at.row) - this.scroller.scrollTop + ROW / 2;
    return { x: rect.left + at.box.x + Math.min(at.box.width / 2, 60), y: rect.top + y };
  }

  /** Scrolls a cell into view. */
  reveal(cell: Cell): void {
    const at = this.find(cell);
    if (!at) return;
    const y = this.yOf(at.row);
    const { scrollTop, clientHeight } = this.scroller;
    if (y < scrollTop) this.scroller.scrollTop = y;
    else if (y + ROW > scrollTop + clientHeight) this.scroller.scrollTop = y + ROW - clientHeight;
  }

  private find(cell: Cell): { box: Box; row: number } | null {
    for (let row = 0; row < this.laid.rows.length; row++) {
      for (const box of this.laid.rows[row]!) if (box.cell === cell && box.merged === 0) return { box, row };
    }
    return null;
  }

  /** Scrolls the zoomed cell to the top, or to the bottom of flames. */
  private scrollToZoom(): void {
    const { rows, focus } = this.laid;
    const up = this.scene?.state.up ?? false;
    const sandwich = this.scene?.callers !== null;
    if (sandwich) {
      this.scroller.scrollTop = Math.max(0, this.yOf(focus) - this.scroller.clientHeight / 2);
    } else if (up) {
      this.scroller.scrollTop = this.yOf(Math.max(0, focus - 2)) + ROW - this.scroller.clientHeight;
    } else {
      this.scroller.scrollTop = rows.length * ROW <= this.scroller.clientHeight ? 0 : this.yOf(Math.max(0, focus - 2));
    }
    this.redraw();
  }

  private yOf(row: number): number {
    return (this.scene?.state.up ? this.laid.rows.length - 1 - row : row) * ROW;
  }

  private relayout(): void {
    const { scene, zoomed } = this;
    const width = this.scroller.clientWidth;
    if (!scene || !zoomed || width === 0) return;
    const start = performance.now();
    this.laid = scene.callers
      ? layoutSandwich(scene.tree, scene.callers, width)
      : layout(scene.tree, zoomed, width);
    // The height grows with the graph up to the limit of the style sheet. It never shrinks, because the
    // content below would jump with every zoom.
    this.tallest = Math.max(this.tallest, this.laid.rows.length * ROW);
    this.scroller.style.height = `${this.tallest}px`;
    this.space.style.height = `${Math.max(this.laid.rows.length * ROW, this.scroller.clientHeight)}px`;
    this.hovered = null;
    this.draw();
    this.lastFrame = performance.now() - start;
  }

  /** Schedules a drawing before the next frame. */
  redraw(): void {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.draw();
    });
  }

  private draw(): void {
    const { scene, canvas, scroller } = this;
    if (!scene) return;
    const ratio = window.devicePixelRatio || 1;
    const width = scroller.clientWidth;
    const height = scroller.clientHeight;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) return;
    const forced = matchMedia("(forced-colors: active)").matches;
    const palette = forced ? FORCED : colors(this.theme);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = palette.background;
    context.fillRect(0, 0, width, height);
    context.font = FONT;
    context.textBaseline = "middle";
    const top = scroller.scrollTop;
    const { rows } = this.laid;
    const hatches = this.hatch(context, forced);
    for (let row = 0; row < rows.length; row++) {
      const y = this.yOf(row) - top;
      if (y + ROW < 0 || y > height) continue;
      for (const box of rows[row]!) this.box(context, scene, box, y, palette, forced, hatches);
    }
    if (rows.length === 0 || (scene.tree.root.weight === 0 && rows.length <= 1)) {
      context.fillStyle = palette.soft;
      context.fillText(this.emptyMessage(scene), 12, ROW * 2);
    }
  }

  private emptyMessage(scene: Scene): string {
    if (scene.state.view === "sandwich" && !scene.selection.pivots) {
      return "The sandwich view needs a pivot. Select a frame and choose Pivot, or add a filter such as P: decode.";
    }
    return scene.chips.some((chip) => !chip.error)
      ? "No callstacks match the filters."
      : "This dump does not contain samples of this measure.";
  }

  private box(
    context: CanvasRenderingContext2D,
    scene: Scene,
    box: Box,
    y: number,
    palette: Colors,
    forced: boolean,
    hatches: { more: CanvasPattern; less: CanvasPattern },
  ): void {
    const { cell } = box;
    const x = box.x;
    const width = Math.max(box.width - (box.width > 3 ? 1 : 0.25), 0.75);
    const height = ROW - 1;
    const compared = scene.shown.before !== null;
    let more = 0;
    if (box.merged > 0) {
      context.fillStyle = palette.merged;
    } else if (forced) {
      context.fillStyle = "Canvas";
    } else if (compared) {
      const change = cell.after - cell.before;
      const isWithinError = change !== 0 && this.stage.isCellWithinError(scene, box.tree, cell);
      const share = change / Math.max(Math.abs(cell.after), Math.abs(cell.before), 1);
      context.fillStyle = changeColor(share, isWithinError, this.theme);
      more = isWithinError ? 0 : Math.sign(change);
    } else {
      context.fillStyle = scene.palette.color(scene.keys, cell.chain[cell.chain.length - 1] ?? cell.key, this.theme);
    }
    const hit = this.hits && box.merged === 0 && cell.key >= 0 && this.isHit(cell);
    context.globalAlpha = (this.hits && !hit) || box.onPath ? 0.45 : 1;
    context.fillRect(x, y, width, height);
    if (more !== 0 && !box.onPath && width > 4) {
      context.fillStyle = more > 0 ? hatches.more : hatches.less;
      context.fillRect(x, y, width, height);
    }
    context.globalAlpha = 1;
    if (forced && width > 2) {
      context.strokeStyle = "CanvasText";
      context.lineWidth = 1;
      context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
    }
    if (hit) {
      context.fillStyle = palette.hit;
      context.fillRect(x, y + height - 3, width, 3);
    }
    if (cell === this.selected && box.merged === 0) {
      context.strokeStyle = palette.focus;
      context.lineWidth = 2;
      context.strokeRect(x + 1, y + 1, Math.max(width - 2, 1), height - 2);
    } else if (box === this.hovered) {
      context.strokeStyle = palette.ink;
      context.lineWidth = 1;
      context.strokeRect(x + 0.5, y + 0.5, Math.max(width - 1, 1), height - 1);
    }
    if (width < 24) return;
    const left = Math.max(x, 0) + 5;
    const text = this.fitted(context, this.boxText(scene, box), width - 9);
    if (!text) return;
    context.fillStyle = palette.ink;
    context.fillText(text, left, y + ROW / 2);
  }

  private isHit(cell: Cell): boolean {
    return this.hits![cell.key] === 1 || cell.chain.some((key) => this.hits![key] === 1);
  }

  private boxText(scene: Scene, box: Box): string {
    const { cell } = box;
    if (box.merged > 0) return `${box.merged} smaller`;
    const label = labelOf(scene, cell);
    const changed = scene.shown.before !== null && cell.after !== cell.before;
    if (!cell.parent && !changed) return `${label}  ${amount(cell.after, scene.unit)}`;
    if (changed) {
      return `${signed(cell.after - cell.before, scene.unit)}  ${label}`;
    }
    return label;
  }

  /** Returns the text, cut with an ellipsis if it does not fit. */
  private fitted(context: CanvasRenderingContext2D, text: string, room: number): string {
    let full = this.widths.get(text);
    if (full === undefined) {
      if (this.widths.size > 20_000) this.widths.clear();
      full = context.measureText(text).width;
      this.widths.set(text, full);
    }
    if (full <= room) return text;
    const letters = Math.floor((text.length * (room - 10)) / full);
    return letters < 2 ? "" : `${text.slice(0, letters)}…`;
  }

  /** Returns the patterns: rising strokes for increases, falling strokes for decreases. */
  private hatch(context: CanvasRenderingContext2D, forced: boolean): { more: CanvasPattern; less: CanvasPattern } {
    const key = `${this.theme} ${forced}`;
    if (this.hatches?.key === key) return this.hatches;
    const stroke = (rising: boolean): CanvasPattern => {
      const tile = document.createElement("canvas");
      tile.width = tile.height = 8;
      const ink = tile.getContext("2d")!;
      ink.strokeStyle = forced ? "CanvasText" : this.theme === "light" ? "rgba(0,0,0,.16)" : "rgba(255,255,255,.16)";
      ink.lineWidth = 1.2;
      for (const shift of [-8, 0, 8]) {
        ink.beginPath();
        ink.moveTo(shift, rising ? 8 : 0);
        ink.lineTo(shift + 8, rising ? 0 : 8);
        ink.stroke();
      }
      return context.createPattern(tile, "repeat")!;
    };
    this.hatches = { key, more: stroke(true), less: stroke(false) };
    return this.hatches;
  }

  private boxAt(x: number, y: number): Box | null {
    const { rows } = this.laid;
    const line = Math.floor((y + this.scroller.scrollTop) / ROW);
    const row = rows[this.scene?.state.up ? rows.length - 1 - line : line];
    return row?.find((box) => x >= box.x && x < box.x + Math.max(box.width, 1)) ?? null;
  }

  private point(event: MouseEvent): void {
    const box = this.boxAt(event.offsetX, event.offsetY);
    if (box !== this.hovered) {
      this.hovered = box;
      this.redraw();
    }
    this.canvas.style.cursor = box ? "pointer" : "default";
    this.events.hover(box, event.clientX, event.clientY);
  }

  private leave(): void {
    this.hovered = null;
    this.redraw();
    this.events.hover(null, 0, 0);
  }

  private click(event: MouseEvent): void {
    const box = this.boxAt(event.offsetX, event.offsetY);
    if (!box) return;
    this.focus();
    if (box.merged > 0) {
      if (box.cell.parent && box.cell.parent !== this.zoomed) this.events.zoom(box.cell.parent);
      return;
    }
    if (event.shiftKey || box.tree.direction === "callers" || box.tree.direction === "callees") {
      this.events.select(box.cell);
    } else {
      this.events.zoom(box.cell);
    }
  }

  /** Fills the tree grid: the path to the selected box, its siblings and its children. */
  private describe(): void {
    const { scene } = this;
    if (!scene || !this.zoomed) return;
    const tree = scene.tree;
    const current = this.selected && this.selected.parent ? this.selected : (this.zoomed.parent ? this.zoomed : null);
    const rows: HTMLElement[] = [];
    const add = (cell: Cell, place: number, of: number, expanded: boolean): void => {
      const active = cell === current;
      rows.push(
        h(
          "div",
          {
            role: "row",
            id: active ? "flame-active" : null,
            "aria-level": cell.depth + 1,
            "aria-posinset": place + 1,
            "aria-setsize": of,
            "aria-expanded": expanded ? "true" : "false",
            "aria-selected": active ? "true" : "false",
          },
          h("span", { role: "gridcell" }, this.rowText(scene, tree, cell)),
        ),
      );
    };
    add(tree.root, 0, 1, true);
    const path = current ? pathOf(current) : [];
    for (const cell of path.slice(0, -1).slice(-60)) {
      const siblings = tree.children(cell.parent!);
      add(cell, siblings.indexOf(cell), siblings.length, true);
    }
    const around = current ? tree.children(current.parent!) : tree.children(tree.root);
    const at = current ? around.indexOf(current) : 0;
    const first = Math.max(0, at - MAX_LISTED / 2);
    around.slice(first, first + MAX_LISTED).forEach((cell, i) => {
      add(cell, first + i, around.length, cell === current);
      if (cell !== current) return;
      const children = tree.children(cell);
      children.slice(0, MAX_LISTED).forEach((child, place) => add(child, place, children.length, false));
    });
    fill(this.rowsElement, ...rows);
    this.scroller.setAttribute(
      "aria-label",
      `Flame graph, ${scene.state.view}, ${counted(this.laid.boxes, "box", "boxes")}. Use the arrow keys to move, Enter to zoom in, Escape to zoom out, question mark to list all keys.`,
    );
    if (current) this.scroller.setAttribute("aria-activedescendant", "flame-active");
    else this.scroller.removeAttribute("aria-activedescendant");
  }

  private rowText(scene: Scene, tree: Tree, cell: Cell): string {
    const change = scene.shown.before ? `, ${signed(cell.after - cell.before, scene.unit)}` : "";
    return `${labelOf(scene, cell)}: ${amount(cell.after, scene.unit)}, ${percent(cell.after, tree.root.after)}${change}`;
  }
}

/** Returns the label of a cell; a folded chain has the labels of its ends. */
export function labelOf(scene: Scene, cell: Cell): string {
  const label = scene.keys.label(cell.key);
  const last = cell.chain[cell.chain.length - 1];
  if (last === undefined) return label;
  const between = cell.chain.length > 1 ? ` › … ${cell.chain.length - 1} … › ` : " › ";
  return `${label}${between}${scene.keys.label(last)}`;
}

const FORCED: Colors = {
  background: "Canvas",
  ink: "CanvasText",
  soft: "GrayText",
  edge: "CanvasText",
  focus: "Highlight",
  hit: "Highlight",
  merged: "GrayText",
  root: "Canvas",
};
