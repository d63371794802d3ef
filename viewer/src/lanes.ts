// Pictures of the lanes in Memory over time: stacked parts, lines with gaps, marks of collections. Works
// on times and values, independent of processes.

import type { Axis } from "./axis";
import { svg } from "./dom";
import type { Run } from "./readings";

export interface Series {
  key: string;
  label: string;
  /** Class in the style sheet: color and dashes. */
  style: string;
  unit: string;
  runs: Run[];
  /** Whether the points have dots. */
  dots?: boolean;
  /** Limits of the interval of a point, by time in ms. */
  bars?: Map<number, [low: number, high: number]>;
  at(ms: number): number | null;
}

export interface Mark {
  ms: number;
  /** From 0 to 1. */
  size: number;
  ours: boolean;
}

export interface Lane {
  title: string;
  height: number;
  /** Stacked areas, bottom first. */
  stacked: Series[];
  lines: Series[];
  marks: Mark[];
  /** Time ranges of heaptap activity, in ms. */
  bands: [from: number, to: number][];
  /** Remark about the values. */
  note?: string;
}

const TOP = 4;
/** Height of the marks in px. */
const MARKS_HEIGHT = 16;
/** Maximum number of dots on a line; more would merge. */
const MAX_DOTS = 400;

/** Returns the largest value in a lane, at least 1. */
export function maxValue(lane: Lane): number {
  let most = 1;
  for (const { runs, bars } of lane.lines) {
    for (const run of runs) for (const [, value] of run) most = Math.max(most, value);
    for (const [, high] of bars?.values() ?? []) most = Math.max(most, high);
  }
  for (const layers of layersOf(lane.stacked)) for (const [, tops] of layers) most = Math.max(most, tops[tops.length - 1]!);
  return most;
}

type Layers = [ms: number, tops: number[]][];

/** Returns the cumulative sums of the stacked series, which have the same times. */
function layersOf(stacked: Series[]): Layers[] {
  const first = stacked[0];
  if (!first) return [];
  return first.runs.map((run, i) =>
    run.map(([ms], j) => {
      let sum = 0;
      return [ms, [0, ...stacked.map((series) => (sum += Math.max(0, series.runs[i]?.[j]?.[1] ?? 0)))]];
    }),
  );
}

export function draw(lane: Lane, axis: Axis, width: number): SVGElement {
  const { height } = lane;
  const most = maxValue(lane);
  const floor = height - (lane.marks.length > 0 ? MARKS_HEIGHT : 2);
  const x = (ms: number): number => axis.x(ms, width);
  const y = (value: number): number => floor - ((floor - TOP) * Math.max(0, value)) / most;
  const point = (ms: number, value: number): string => `${x(ms).toFixed(1)},${y(value).toFixed(1)}`;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", height, preserveAspectRatio: "none", "aria-hidden": "true", class: "lane-picture" });
  // Without it, the style sheet would scale the height with the width.
  picture.style.height = `${height}px`;
  picture.append(svg("line", { x1: 0, x2: width, y1: floor, y2: floor, class: "floor" }), svg("line", { x1: 0, x2: width, y1: y(most / 2), y2: y(most / 2), class: "half" }));
  for (const [from, to] of lane.bands) {
    picture.append(svg("rect", { x: x(from), y: TOP, width: Math.max(2, x(to) - x(from)), height: floor - TOP, class: "ours-band" }));
  }
  for (const layers of layersOf(lane.stacked)) {
    // A single reading is widened to be visible.
    const wide: Layers = layers.length === 1 ? [layers[0]!, [axis.ms(x(layers[0]![0]) + 3, width), layers[0]![1]]] : layers;
    lane.stacked.forEach((series, i) => {
      const above = wide.map(([ms, tops]) => point(ms, tops[i + 1]!));
      const below = wide.map(([ms, tops]) => point(ms, tops[i]!)).reverse();
      picture.append(svg("polygon", { points: [...above, ...below].join(" "), class: `area ${series.style}` }));
    });
  }
  for (const series of lane.lines) {
    const count = series.runs.reduce((sum, run) => sum + run.length, 0);
    for (const run of series.runs) {
      picture.append(svg("polyline", { points: run.map(([ms, value]) => point(ms, value)).join(" "), class: `line ${series.style}` }));
      if ((series.dots || run.length === 1) && count <= MAX_DOTS) {
        for (const [ms, value] of run) picture.append(svg("circle", { cx: x(ms), cy: y(value), r: 2.5, class: `point ${series.style}` }));
      }
    }
    for (const [ms, [low, high]] of series.bars ?? []) {
      picture.append(svg("line", { x1: x(ms), x2: x(ms), y1: y(low), y2: y(high), class: `bar ${series.style}` }));
    }
  }
  for (const { ms, size, ours } of lane.marks) {
    if (!axis.shows(ms)) continue;
    const [left, tall] = [x(ms), 4 + 9 * size];
    picture.append(svg("polygon", { points: `${left},${height - tall - 1} ${left - 3.5},${height - 1} ${left + 3.5},${height - 1}`, class: ours ? "gc ours" : "gc" }));
  }
  return picture;
}
