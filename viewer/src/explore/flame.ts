// Flame graph of the heap: shortest paths or dominators, merged by class. Each box is a link that zooms.

import { h, name, put } from "../dom";
import { sanitize } from "../names";
import { bytes, counted, percent, thousands } from "../units";
import { askOnce, type Flame, type FlameNode } from "./api";
import { oneTabStop } from "./boxes";
import { encode, type Place } from "./place";
import { room } from "./room";
import { choices, classLink } from "./rows";

const ROW = 20;
/** Minimum width of a box, and of one with a label, in px. */
const MIN_WIDTH = 2;
const LABEL_WIDTH = 30;
const TREES = { paths: "Shortest paths", dominators: "Dominators" };
const MEASURES = { bytes: "Bytes", objects: "Objects" };

type Weight = (node: { count: number; bytes: number }) => number;

/** Returns the flame graph of a place: `by` is the tree, `sort` the measure, `id` the zoomed node. */
export async function flameView(place: Place, signal: AbortSignal): Promise<HTMLElement> {
  const tree = place.by ?? "paths";
  // Boxes are indexes into this answer.
  const flame = await askOnce<Flame>("flame", { tree }, signal);
  const isCounted = place.sort === "objects";
  const weight: Weight = (node) => (isCounted ? node.count : node.bytes);
  const zoomed = place.id !== undefined && flame.nodes[Number(place.id)] ? Number(place.id) : null;
  const width = room();
  const choice = (of: Record<string, string>, key: "by" | "sort", current: string): [string, Place, boolean][] =>
    Object.entries(of).map(([value, title]) => [title, { view: "flame", by: tree, ...(isCounted ? { sort: "objects" } : {}), [key]: value }, value === current]);
  return h(
    "div",
    null,
    choices("Tree", choice(TREES, "by", tree)),
    choices("Measure", choice(MEASURES, "sort", isCounted ? "objects" : "bytes")),
    details(flame, zoomed, isCounted),
    drawn(flame, zoomed, weight, width, place),
    flame.is_folded && h("p", { class: "soft" }, "Objects with the class of their parent are a part of it, because the tree is deep."),
    flame.left_out > 0 && h("p", { class: "soft" }, `${counted(flame.left_out, "small node")} not shown.`),
  );
}

/** Returns the name of a node: the class, its root kind, and whether it is native. */
function label(flame: Flame, node: FlameNode): string {
  const text = sanitize(flame.names[node.name] ?? "");
  return `${node.is_native ? "[native] " : ""}${text}${node.root ? ` [${rootWords(node.root)}]` : ""}`;
}

/** Returns the kind of a GC root in the words of the other views, such as `JNI global`. */
function rootWords(kind: string): string {
  const words = kind.replace(/^ROOT_/, "").toLowerCase().replaceAll("_", " ");
  const known: Record<string, string> = { "sticky class": "system class", "thread object": "thread", "monitor used": "monitor in use", unknown: "unknown root" };
  return known[words] ?? words.replace(/^(jni|vm)/, (word) => word.toUpperCase()).replace(/^java/, "Java");
}

function details(flame: Flame, zoomed: number | null, isCounted: boolean): HTMLElement {
  if (zoomed === null) return h("p", null, `${bytes(flame.bytes)} in ${counted(flame.count, "object")}`);
  const node = flame.nodes[zoomed]!;
  const share = isCounted ? percent(node.count, flame.count) : percent(node.bytes, flame.bytes);
  const of = flame.names[node.name] ?? "";
  return h(
    "p",
    null,
    name(label(flame, node)),
    `: ${bytes(node.bytes)} in ${counted(node.count, "object")}, ${share} of the heap; itself ${bytes(node.own_bytes)} in ${thousands(node.own_count)}. `,
    "Class: ",
    classLink(of),
  );
}

function drawn(flame: Flame, zoomed: number | null, weight: Weight, width: number, place: Place): HTMLElement {
  const children = new Map<number | null, number[]>();
  flame.nodes.forEach((node, at) => {
    const siblings = children.get(node.above);
    if (siblings) siblings.push(at);
    else children.set(node.above, [at]);
  });
  const root = h("div", { class: "flames", role: "group", "aria-label": "Flame graph: arrow keys move, Enter zooms" });
  const boxes: HTMLElement[] = [];
  let depth = 0;
  const box = (at: number | null, x: number, row: number, wide: number, isAbove: boolean): void => {
    const node = at === null ? null : flame.nodes[at]!;
    const text = node ? label(flame, node) : "Heap";
    const hint = node ? `${text}: ${bytes(node.bytes)} in ${counted(node.count, "object")}` : text;
    const { id: _, ...unzoomed } = place;
    const element = h("a", {
      class: isAbove ? "above" : `depth-${hue(text)}`,
      href: encode(at === null ? unzoomed : { ...place, id: String(at) }),
      title: hint,
      "aria-label": hint,
    });
    Object.assign(element.style, { left: `${x}px`, top: `${row * ROW}px`, width: `${wide}px` });
    if (wide >= LABEL_WIDTH) put(element, text);
    if (at === zoomed && at !== null) element.setAttribute("data-entry", "");
    boxes.push(element);
    root.append(element);
    depth = Math.max(depth, row + 1);
  };
  // The path to the zoomed box comes first, each as wide as the graph.
  const path: (number | null)[] = [];
  for (let at = zoomed; at !== null; at = flame.nodes[at]!.above) path.unshift(at);
  path.unshift(null);
  path.forEach((at, row) => box(at, 0, row, width, row < path.length - 1));
  const open: { at: number | null; x: number; row: number; wide: number }[] = [{ at: zoomed, x: 0, row: path.length, wide: width }];
  while (open.length > 0) {
    const { at, x, row, wide } = open.pop()!;
    const below = (children.get(at) ?? []).sort((a, b) => weight(flame.nodes[b]!) - weight(flame.nodes[a]!));
    const whole = at === null ? weight(flame) : weight(flame.nodes[at]!);
    let left = x;
    for (const child of below) {
      const part = whole > 0 ? (weight(flame.nodes[child]!) / whole) * wide : 0;
      if (part < MIN_WIDTH) break;
      box(child, left, row, Math.max(MIN_WIDTH - 1, part - 1), false);
      open.push({ at: child, x: left, row: row + 1, wide: part });
      left += part;
    }
  }
  oneTabStop(root, boxes, boxes[path.length - 1]);
  root.style.height = `${depth * ROW}px`;
  return root;
}

/** Returns a number of a color, the same for the same text. */
function hue(text: string): number {
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = (hash * 31 + text.charCodeAt(i)) | 0;
  return Math.abs(hash) % 4;
}
