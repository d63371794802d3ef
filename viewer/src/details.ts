// Details of a box: its values in every measure with their confidence interval, its callstack, and
// actions. The tooltip is a short version.

import { button, fill, h, name } from "./dom";
import { change, estimate } from "./estimate";
import { labelOf } from "./flame";
import { pathOf, type Cell, type Tree } from "./grow";
import { libraryName, sourceLine, type Keys } from "./keys";
import type { Box } from "./layout";
import { sanitize } from "./names";
import { isWithinError } from "./noise";
import type { Profile } from "./profile";
import type { Scene, Stage } from "./scene";
import { amount, counted, exact, percent, signed } from "./units";

/** Returns the title of a measure. */
export function measureTitle(measure: { name: string; view: string | null }): string {
  const titles: Record<string, string> = {
    space: "Unreleased bytes",
    alloc_space: "Allocated bytes",
    objects: "Unreleased count",
    alloc_objects: "Allocated count",
  };
  return (measure.view && titles[measure.view]) || sanitize(measure.name);
}

export type Action = "zoom" | "SS" | "HS" | "SFF" | "HF" | "P" | "CF" | "folded" | "markdown" | "tsv";

const ACTIONS: { action: Action; label: string; title: string }[] = [
  { action: "SS", label: "Show stack", title: "Show only callstacks that contain this function (F)" },
  { action: "HS", label: "Hide stack", title: "Hide all callstacks that contain this function (d)" },
  { action: "SFF", label: "Show from frame", title: "Show this function and its callees only (f)" },
  { action: "P", label: "Pivot", title: "Show its callers above and its callees below (p)" },
  { action: "HF", label: "Hide frame", title: "Hide the frames of this function; its callees move to its callers (m)" },
  { action: "CF", label: "Collapse into frame", title: "Count its callees as part of this function (c)" },
];

function locate(profile: Profile, scene: Scene, tree: Tree, cell: Cell): { library: string; place: string; system: string; inlined: boolean } {
  const frame = tree.frameAt(cell);
  if (frame < 0 || !cell.parent) return { library: "", place: "", system: "", inlined: false };
  const id = profile.frames.function[frame]!;
  // A box can contain several lines of a function; show a line only if it is the same for all.
  let location = sourceLine(profile, frame);
  const nodes = cell.at ?? cell.nodes;
  for (let i = 1; i < Math.min(nodes.length, 200); i++) {
    if (sourceLine(profile, profile.nodes.frame[nodes[i]!]!) !== location) {
      const file = profile.texts[profile.frames.file[frame]!] ?? "";
      location = file ? `${file}, several lines` : "";
      break;
    }
  }
  return {
    library: profile.libraries[profile.functions.library[id]!]?.path || libraryName(profile, profile.functions.library[id]!),
    place: scene.keys.grouping === "library" || scene.keys.grouping === "package" ? "" : location,
    system: scene.keys.grouping === "function" || scene.keys.grouping === "line" ? (profile.texts[profile.functions.system[id]!] ?? "") : "",
    inlined: profile.frames.inlined[frame] === 1,
  };
}

export class Details {
  readonly element: HTMLElement;

  constructor(
    private readonly profile: Profile,
    private readonly stage: Stage,
    private readonly act: (action: Action, cell: Cell, tree: Tree) => void,
    private readonly go: (cell: Cell) => void,
  ) {
    this.element = h("aside", { class: "details", "aria-label": "Details" });
  }

  show(scene: Scene, tree: Tree, cell: Cell | null): void {
    if (!cell || !cell.parent) {
      fill(this.element, ...this.whole(scene, tree));
      return;
    }
    const { profile, stage } = this;
    tree.children(cell);
    const location = locate(profile, scene, tree, cell);
    const root = tree.root;
    const dump = profile.dumps[scene.state.dump]!.facts;
    const compared = scene.shown.before !== null;
    const rows = dump.measures.map((measure, i) => {
      if (measure.small_of) return null;
      const figure = stage.figure(scene, i, (column) => tree.sum(cell, column));
      const whole = tree.sum(root, scene.columns.get(scene.state.dump, i));
      return h(
        "tr",
        { class: i === scene.measure ? "now" : null },
        h("th", { scope: "row" }, measureTitle(measure)),
        h("td", { class: "n", title: exact(figure.after, measure.unit) }, amount(figure.after, measure.unit)),
        h("td", { class: "n" }, compared ? signed(figure.after - figure.before, measure.unit) : percent(figure.after, whole)),
      );
    });
    const figure = stage.figure(scene, scene.measure, (column) => tree.sum(cell, column));
    const error =
      figure.range === null
        ? null
        : compared
          ? h("p", { class: isWithinError(figure.range) ? "hint noise" : "hint" }, `Change: ${change(figure.range, scene.unit)}. 95% confidence interval, sampling error only.`)
          : figure.range.exact
            ? null
            : h("p", { class: "hint" }, `Estimated size: ${estimate(figure.range)}. 95% confidence interval, sampling error only.`);
    const path = pathOf(cell);
    fill(
      this.element,
      h("h2", null, name(labelOf(scene, cell))),
      h("p", { class: "where" }, location.library ? name(location.library) : null, location.place ? h("span", null, h("br"), name(location.place)) : null, location.inlined ? h("span", { class: "tag" }, "inlined") : null),
      location.system ? h("p", { class: "hint" }, "Recorded name: ", h("code", null, name(location.system))) : null,
      h(
        "table",
        { class: "static figures" },
        h("thead", null, h("tr", null, h("th", { scope: "col" }, "Sampled"), h("th", { scope: "col", class: "n" }, "With callees"), h("th", { scope: "col", class: "n" }, compared ? "Change" : "Share"))),
        h("tbody", null, ...rows),
      ),
      tree.direction === "top-down" || tree.direction === "callees"
        ? h("p", { class: "hint" }, `Self: ${exact(cell.selfAfter, scene.unit)} of ${exact(cell.after, scene.unit)}; ${percent(cell.after, cell.parent.after)} of its caller.`)
        : h("p", { class: "hint" }, `${exact(cell.after, scene.unit)}; ${percent(cell.after, cell.parent.after)} of the previous row.`),
      error,
      h(
        "div",
        { class: "actions" },
        ...ACTIONS.map(({ action, label, title }) => button(label, { title, onclick: () => this.act(action, cell, tree) })),
      ),
      h(
        "div",
        { class: "actions" },
        h("span", { class: "soft" }, "Copy callstack"),
        button("Folded", { onclick: () => this.act("folded", cell, tree), "aria-label": "Copy callstack as folded text" }),
        button("Markdown", { onclick: () => this.act("markdown", cell, tree), "aria-label": "Copy callstack as a Markdown table" }),
        button("TSV", { onclick: () => this.act("tsv", cell, tree), "aria-label": "Copy callstack as tab-separated values" }),
      ),
      h("h3", null, `Callstack, ${counted(path.length, "frame")}`),
      h(
        "ol",
        { class: "stack" },
        ...path
          .slice(-80)
          .reverse()
          .map((at) =>
            h("li", null, button("", { class: "link", onclick: () => this.go(at), "aria-current": at === cell ? "true" : null })),
          ),
      ),
    );
    this.element.querySelectorAll(".stack button").forEach((element, i) => {
      const at = path[path.length - 1 - i]!;
      element.append(name(labelOf(scene, at)), h("span", { class: "soft" }, amount(at.after, scene.unit)));
    });
  }

  /** Returns the details of the whole dump, for when nothing is selected. */
  private whole(scene: Scene, tree: Tree): Node[] {
    const { profile, stage } = this;
    const dump = profile.dumps[scene.state.dump]!.facts;
    const compared = scene.shown.before !== null;
    const sum = (i: number) => stage.figure(scene, i, (column) => column.sum);
    const figure = sum(scene.measure);
    const counts = profile.dumps[scene.state.dump]!.facts.counts_samples ? " Counts are sampled allocations." : "";
    return [
      h("h2", null, compared ? "All changes" : "All shown callstacks"),
      h("p", { class: "where" }, name(dump.process || "all processes"), dump.heap ? h("span", null, ", ", name(dump.heap)) : null),
      h(
        "table",
        { class: "static figures" },
        h("thead", null, h("tr", null, h("th", { scope: "col" }, "Sampled"), h("th", { scope: "col", class: "n" }, "Shown"), h("th", { scope: "col", class: "n" }, compared ? "Change" : "Share of dump"))),
        h(
          "tbody",
          null,
          ...dump.measures.map((measure, i) => {
            if (measure.small_of) return null;
            const each = sum(i);
            return h(
              "tr",
              { class: i === scene.measure ? "now" : null },
              h("th", { scope: "row" }, measureTitle(measure)),
              h("td", { class: "n", title: exact(each.after, measure.unit) }, amount(each.after, measure.unit)),
              h("td", { class: "n" }, compared ? signed(each.after - each.before, measure.unit) : percent(each.after, measure.total)),
            );
          }),
        ),
      ),
      figure.range && !figure.range.exact
        ? h("p", { class: "hint" }, compared ? `Change: ${change(figure.range, scene.unit)}.` : `Estimated size: ${estimate(figure.range)}.`, " 95% confidence interval, sampling error only.")
        : h("p", { class: "hint" }, ""),
      h("p", { class: "hint" }, tree.children(tree.root).length > 0 ? `Click a box to zoom in, Shift-click a box to select it, or point at a box for its values.${counts}` : ""),
    ];
  }
}

/** Returns the tooltip of a box. */
export function tooltip(profile: Profile, scene: Scene, stage: Stage, box: Box): Node[] {
  const { cell, tree } = box;
  if (box.merged > 0) {
    return [
      h("b", null, `${counted(box.merged, "box", "boxes")} narrower than a pixel`),
      h("p", null, `${amount(box.mergedWeight, scene.unit)} in total. Click to zoom in on the caller.`),
    ];
  }
  tree.children(cell);
  const location = locate(profile, scene, tree, cell);
  const lines: Node[] = [h("b", null, name(labelOf(scene, cell)))];
  if (location.library) lines.push(h("p", { class: "soft" }, name(location.library), location.place ? h("span", null, " · ", name(location.place)) : null));
  const whole = tree.root.after;
  const shares = cell.parent ? ` · ${percent(cell.after, whole)} of total · ${percent(cell.after, cell.parent.after)} of its ${tree.direction === "bottom-up" || tree.direction === "callers" ? "row" : "caller"}` : "";
  lines.push(h("p", null, h("b", null, amount(cell.after, scene.unit)), shares));
  if (scene.shown.before) {
    const figure = stage.figure(scene, scene.measure, (column) => tree.sum(cell, column));
    lines.push(
      h("p", null, `${amount(cell.before, scene.unit)} → ${amount(cell.after, scene.unit)}: `, h("b", null, figure.range ? change(figure.range, scene.unit) : signed(cell.after - cell.before, scene.unit))),
    );
  }
  const dump = profile.dumps[scene.state.dump]!.facts;
  const counts = dump.measures.findIndex(({ view }) => view === (dump.measures[scene.measure]!.view?.startsWith("alloc") ? "alloc_objects" : "objects"));
  const count = counts >= 0 && counts !== scene.measure ? ` · ${amount(tree.sum(cell, scene.columns.get(scene.state.dump, counts)), "count")} ${profile.dumps[scene.state.dump]!.facts.counts_samples ? "sampled" : "allocations"}` : "";
  const self = tree.direction === "top-down" || tree.direction === "callees" ? ` · self ${amount(cell.selfAfter, scene.unit)}` : "";
  lines.push(h("p", { class: "soft" }, `${exact(cell.after, scene.unit)}${self}${count}`));
  return lines;
}

export function keyName(profile: Profile, keys: Keys, key: number): string {
  return profile.texts[profile.functions.name[profile.frames.function[keys.frameOf[key]!]!]!] ?? "";
}
