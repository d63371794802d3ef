// Keys of the page; inactive in input fields. help.ts lists them.

import type { App } from "./app";
import type { Action } from "./details";
import type { Cell } from "./grow";

const ON_BOX: Record<string, Action | "HF lib"> = {
  f: "SFF",
  F: "SS",
  d: "HS",
  m: "HF",
  c: "CF",
  C: "HF lib",
  p: "P",
  y: "folded",
};

export function bindKeys(app: App): void {
  const { help } = app;
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || help.open) return;
    if (app.state.tab === "java" && app.explorer.key(event)) {
      event.preventDefault();
      return;
    }
    const target = event.target as HTMLElement;
    const typing = target.matches("input:not([type=checkbox]), textarea, select");
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !typing) {
      event.preventDefault();
      if (event.shiftKey) app.redo();
      else app.undo();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || typing) {
      if (typing && event.key === "Escape") target.blur();
      return;
    }
    const flame = app.state.tab === "flame" && target.closest("[role=tablist], .table-scroll, .strip, .memory, select") === null;
    const handled = onPage(app, help, event) || (flame && app.scene !== null && onGraph(app, event));
    if (handled) event.preventDefault();
  });
}

function onPage(app: App, help: HTMLDialogElement, event: KeyboardEvent): boolean {
  const { key } = event;
  const number = /^[1-9]$/.test(key) ? Number(key) : 0;
  if (number > 0 && number <= app.tabs.length) {
    app.openTab(app.tabs[number - 1]!);
    return true;
  }
  if (key === "?") {
    help.showModal();
    return true;
  }
  if (app.header.dumps.length === 0) return false;
  const actions: Record<string, () => void> = {
    "/": () => {
      app.search.focus();
      app.search.select();
    },
    n: () => app.nextMatch(1),
    N: () => app.nextMatch(-1),
    u: () => app.undo(),
    U: () => app.redo(),
    b: () => app.change({ view: app.state.view === "bottom-up" ? "top-down" : "bottom-up", zoom: [], selected: [] }),
    i: () => app.change({ up: !app.state.up }),
    r: () => app.change({ foldRecursion: !app.state.foldRecursion }),
    a: () => app.change({ allFrames: !app.state.allFrames }),
    "[": () => step(app, -1, false),
    "]": () => step(app, 1, false),
    "{": () => step(app, -1, true),
    "}": () => step(app, 1, true),
  };
  const action = actions[key];
  if (!action) return false;
  action();
  return true;
}

/** Shows the previous or next dump. With `stretch`, the base of the comparison stays. */
function step(app: App, by: number, stretch: boolean): void {
  const { dump, base } = app.state;
  const series = app.header.series[app.header.dumps[dump]!.series]!.dumps;
  const next = series[series.indexOf(dump) + by];
  if (next === undefined) return;
  const from = stretch ? (base ?? dump) : null;
  app.change({ dump: next, base: from === next ? null : from });
}

function onGraph(app: App, event: KeyboardEvent): boolean {
  const { key } = event;
  const inControl = (event.target as HTMLElement).closest("button, summary, a, label") !== null;
  const scene = app.scene!;
  const { tree } = scene;
  const zoomed = app.zoomed ?? tree.root;
  const action = ON_BOX[key];
  if (action) {
    const cell = app.selected?.parent ? app.selected : zoomed;
    if (cell.parent) void app.act(action, cell, app.treeOf(cell));
    else app.say("Select a box first, with the arrow keys or Shift-click");
    return true;
  }
  const zoomOut = (): void => app.zoom(zoomed.parent ?? tree.root);
  switch (key) {
    case "+":
    case "=": {
      const heaviest = tree.children(zoomed)[0];
      if (heaviest) app.zoom(heaviest);
      return true;
    }
    case "-":
      zoomOut();
      return true;
    case "0":
      app.zoom(tree.root);
      return true;
    case "Escape":
      if (app.state.search) app.change({ search: "" });
      else if (zoomed.parent) zoomOut();
      else if (app.selected) app.select(tree.root);
      else return false;
      return true;
    case "Enter":
      if (inControl || !app.selected) return false;
      app.zoom(app.selected);
      return true;
  }
  if (inControl || !/^(Arrow|Home|End)/.test(key)) return false;
  const next = neighbor(app, key);
  if (next) {
    app.select(next);
    requestAnimationFrame(() => app.flame.reveal(next));
  }
  return true;
}

function neighbor(app: App, key: string): Cell | null {
  const scene = app.scene!;
  const { selected } = app;
  const tree = app.treeOf(selected);
  const at = selected?.parent ? selected : app.zoomed!;
  const upwards = scene.state.up !== (tree === scene.callers);
  const toChild = upwards ? "ArrowUp" : "ArrowDown";
  const toParent = upwards ? "ArrowDown" : "ArrowUp";
  if (key === toChild || (key === "End" && !at.parent)) return tree.children(at)[0] ?? null;
  if (key === toParent) return at.parent?.parent ? at.parent : null;
  if (key === "Home") return tree.children(tree.root)[0] ?? null;
  if (key === "End") {
    let cell = at;
    for (let child = tree.children(cell)[0]; child; child = tree.children(cell)[0]) cell = child;
    return cell;
  }
  const siblings = at.parent ? tree.children(at.parent) : [];
  const place = siblings.indexOf(at);
  return siblings[place + (key === "ArrowRight" ? 1 : -1)] ?? null;
}
