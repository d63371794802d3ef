// Writes reports as viewer/README.md describes them, from plain data, for the browser tests that
// do not use reports written by heaptap. Small and obvious rather than fast.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { deflateSync, gzipSync } from "node:zlib";
import { fileURLToPath } from "node:url";

const dist = (name) => readFileSync(fileURLToPath(new URL(`../dist/${name}`, import.meta.url)), "utf8");

/** A growing buffer of varints. */
class Bytes {
  constructor() {
    this.buffer = Buffer.alloc(1 << 16);
    this.length = 0;
  }
  varint(value) {
    if (this.length + 10 > this.buffer.length) this.buffer = Buffer.concat([this.buffer], this.buffer.length * 2);
    while (value >= 128) {
      this.buffer[this.length++] = (value % 128) + 128;
      value = Math.floor(value / 128);
    }
    this.buffer[this.length++] = value;
  }
  zigzag(value) {
    this.varint(value < 0 ? -value * 2 - 1 : value * 2);
  }
  deltas(values) {
    let last = 0;
    for (const value of values) {
      this.zigzag(value - last);
      last = value;
    }
  }
  done(more = Buffer.alloc(0)) {
    return Buffer.concat([this.buffer.subarray(0, this.length), more]);
  }
}

/** Interns things by a text that identifies them. */
class Table {
  constructor() {
    this.rows = [];
    this.ids = new Map();
  }
  id(key, row) {
    let id = this.ids.get(key);
    if (id === undefined) {
      id = this.rows.length;
      this.ids.set(key, id);
      this.rows.push(row);
    }
    return id;
  }
}

export const KINDS = { plain: 0, allocator: 1, runtime: 2, java: 3 };
export const FOUR = [
  { name: "objects", unit: "count", view: "objects" },
  { name: "space", unit: "bytes", view: "space" },
  { name: "alloc_objects", unit: "count", view: "alloc_objects" },
  { name: "alloc_space", unit: "bytes", view: "alloc_space" },
];

/** Names, frames and a tree of callsites that dumps share. */
export class Stacks {
  constructor() {
    this.strings = new Table();
    this.libraries = new Table();
    this.functions = new Table();
    this.frames = new Table();
    this.string("");
    this.library("", "");
    /** Children by frame, in order of appearance; values are kept by node object. */
    this.root = { frame: -1, children: new Map(), at: -1 };
  }
  string(text) {
    return this.strings.id(text, text);
  }
  library(path, buildId = "") {
    return this.libraries.id(`${path}\0${buildId}`, [this.string(path), this.string(buildId)]);
  }
  /** frame: "name" or {name, lib, file, line, kind, inlined, system}. */
  frame(frame) {
    const { name, lib = "", file = "", line = 0, kind = "plain", inlined = false, system = "" } = typeof frame === "string" ? { name: frame } : frame;
    const row = [this.string(name), this.string(system), this.library(lib), KINDS[kind]];
    const id = this.functions.id(row.join(), row);
    const frameRow = [id, this.string(file), line, inlined ? 1 : 0];
    return this.frames.id(frameRow.join(), frameRow);
  }
  /** The node of a stack, outermost caller first. */
  node(stack) {
    let node = this.root;
    for (const each of stack) {
      const frame = this.frame(each);
      let child = node.children.get(frame);
      if (!child) node.children.set(frame, (child = { frame, children: new Map(), at: -1 }));
      node = child;
    }
    return node;
  }
  /** Nodes in preorder, numbered. */
  numbered() {
    const nodes = [];
    const rest = [[this.root, 0]];
    while (rest.length > 0) {
      const [node, depth] = rest.pop();
      node.at = nodes.length;
      node.depth = depth;
      nodes.push(node);
      const children = [...node.children.values()];
      for (let i = children.length - 1; i >= 0; i--) rest.push([children[i], depth + 1]);
    }
    return nodes;
  }
}

/**
 * The data of a report. `dumps`: [{stacks: [{stack, values: {measure: number}}], …facts}], or
 * with `rows` (Map from node number to values) in place of stacks.
 */
export function encode({ stacks = new Stacks(), dumps = [], header = {}, java = [] }) {
  for (const dump of dumps) {
    for (const each of dump.stacks) each.node = stacks.node(each.stack);
  }
  const nodes = stacks.numbered();
  const pops = new Bytes();
  let depth = 0;
  for (const node of nodes.slice(1)) {
    pops.varint(depth + 1 - node.depth);
    depth = node.depth;
  }
  for (const node of nodes.slice(1)) pops.varint(node.frame);
  const measures = header.measures ?? FOUR;
  const dumpSections = dumps.map((dump) => {
    const rows = new Map();
    for (const { node, values } of dump.stacks) {
      const row = rows.get(node.at) ?? measures.map(() => 0);
      measures.forEach(({ name }, i) => (row[i] += values[name] ?? 0));
      rows.set(node.at, row);
    }
    dump.table = [...rows].sort((a, b) => a[0] - b[0]);
    return writeRows(dump.table, measures.length);
  });
  return encodeTables({
    strings: stacks.strings.rows,
    libraries: stacks.libraries.rows,
    functions: stacks.functions.rows,
    frames: stacks.frames.rows,
    nodes: pops.done(),
    nodeCount: nodes.length,
    measures,
    dumps,
    dumpSections,
    header,
    java,
  });
}

function writeRows(table, columns) {
  const bytes = new Bytes();
  let last = 0;
  for (const [node] of table) {
    bytes.varint(node - last);
    last = node;
  }
  for (let i = 0; i < columns; i++) for (const [, row] of table) bytes.zigzag(row[i]);
  return bytes.done();
}

function encodeTables(model) {
  const { strings, libraries, functions, frames, dumps, measures, java, header } = model;
  const sections = [];
  const text = new Bytes();
  for (const string of strings) text.varint(string.length);
  sections.push(["strings", text.done(Buffer.from(strings.join(""), "utf8"))]);
  const columns = (rows, kinds) => {
    const bytes = new Bytes();
    kinds.forEach((kind, i) => {
      if (kind === "delta") bytes.deltas(rows.map((row) => row[i]));
      else for (const row of rows) bytes.varint(row[i]);
    });
    return bytes.done();
  };
  sections.push(["libraries", columns(libraries, ["delta", "delta"])]);
  sections.push(["functions", columns(functions, ["delta", "delta", "delta", "varint"])]);
  sections.push(["frames", columns(frames, ["delta", "delta", "varint", "varint"])]);
  sections.push(["nodes", model.nodes]);
  model.dumpSections.forEach((bytes, i) => sections.push([`dump.${i}`, bytes]));
  java.forEach((heap, i) => sections.push([`java.${i}`, gzipSync(JSON.stringify(heap.store))]));

  const facts = dumps.map(({ stacks: _, table, ...dump }, i) => ({
    number: i + 1,
    label: null,
    series: 0,
    pid: 4242,
    process: "com.example.app",
    heap: "libc.malloc",
    time_ms: 1000 * (i + 1),
    wall_ms: 1795161590000 + 1000 * i,
    interval: 4096,
    orig_interval: 0,
    counts_samples: true,
    kind: "cumulative",
    flags: [],
    unfinished: false,
    callsites: table.length,
    measures: measures.map((measure, at) => ({ total: table.reduce((sum, [, row]) => sum + row[at], 0), from: null, ...measure })),
    default_measure: Math.max(0, measures.findIndex(({ view }) => view === "space")),
    base: null,
    rows: table.length,
    ...dump,
  }));
  const series = [];
  facts.forEach((dump, place) => {
    series[dump.series] ??= { pid: dump.pid, process: dump.process, heap: dump.heap, start_ms: 0, from_startup: true, after: null, dumps: [], shown: place };
    const own = series[dump.series];
    own.dumps.push(place);
    if (dump.label || !dumps[own.shown].label) own.shown = place;
  });
  let offset = 0;
  const placed = sections.map(([name, bytes]) => {
    const section = { name, offset, length: bytes.length };
    offset += bytes.length;
    return section;
  });
  const { measures: _, ...more } = header;
  const full = {
    format: 1,
    tool: "heaptap test",
    made_wall_ms: 1795161600000,
    title: "com.example.app on Pixel 8",
    facts: [{ name: "Device", value: "Pixel 8, Android 14" }],
    warnings: [],
    where: null,
    unseen: [{ what: "Graphics memory", why: "It is not allocated by malloc.", bytes: null }],
    commands: [],
    symbolization: null,
    counts: { strings: strings.length, libraries: libraries.length, functions: functions.length, frames: frames.length, nodes: model.nodeCount },
    sections: placed,
    dumps: facts,
    series,
    growth: [],
    diff: null,
    folded: null,
    java: java.map((heap, i) => ({ section: `java.${i}`, name: heap.name, dump: heap.dump ?? `dump@${i + 1}`, number: heap.number ?? i + 1, label: null, pid: 4242, process: heap.name, time_ms: null, wall_ms: null, objects: 0, shallow: 0, native: 0, compared_with: heap.compared_with ?? null, leaks: heap.leaks })),
    ...more,
  };
  const json = Buffer.from(JSON.stringify(full), "utf8");
  const head = Buffer.alloc(8);
  head.write("HTR1", 0, "latin1");
  head.writeUInt32LE(json.length, 4);
  return { header: full, data: Buffer.concat([head, json, ...sections.map(([, bytes]) => bytes)]) };
}

/** A profile of about `count` callsites, from a seed: built column by column, since objects of
 * that many would take their time. Shaped like real heaps: many leaves, shallow and deep. */
export function synthetic({ count, functions: functionCount = 60_000, dumps: dumpCount = 1, seed = 1 }) {
  let state = seed >>> 0;
  const random = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 4294967296;
  };
  const strings = [""];
  const libraries = [[0, 0]];
  for (let i = 0; i < 40; i++) libraries.push([strings.push(`/system/lib64/lib${i % 3 ? "part" : "core"}${i}.so`) - 1, 0]);
  const functions = [];
  const frames = [];
  for (let i = 0; i < functionCount; i++) {
    const name = strings.push(`ns${i % 97}::Class${i % 1009}::method${i}(int, std::string const&)`) - 1;
    functions.push([name, 0, 1 + Math.floor(40 * random() ** 3), i < 20 ? 1 : 0]);
    frames.push([i, 0, 0, 0]);
  }
  const pops = new Int32Array(count);
  const frameOf = new Int32Array(count);
  const leaves = [];
  let depth = 0;
  for (let node = 1; node < count; node++) {
    // Walks down, and now and then back up: a leaf each time it turns. About one in 6.5.
    const turn = node > 1 && (random() < 0.153 || depth > 60);
    const pop = turn ? Math.min(depth, 1 + Math.floor(random() * 8)) : 0;
    if (turn) leaves.push(node - 1);
    depth = depth + 1 - pop;
    pops[node] = pop;
    frameOf[node] = Math.floor(functionCount * random() ** 2);
  }
  leaves.push(count - 1);
  const bytes = new Bytes();
  for (let node = 1; node < count; node++) bytes.varint(pops[node]);
  for (let node = 1; node < count; node++) bytes.varint(frameOf[node]);
  const measures = FOUR;
  const dumps = [];
  const dumpSections = [];
  for (let i = 0; i < dumpCount; i++) {
    const table = leaves.map((node) => {
      const hits = 1 + Math.floor(20 * random() ** 6);
      const held = Math.ceil(hits * random());
      return [node, [held, held * 4096, hits, hits * 4096]];
    });
    dumps.push({ table });
    dumpSections.push(writeRows(table, 4));
  }
  return encodeTables({ strings, libraries, functions, frames, nodes: bytes.done(), nodeCount: count, measures, dumps, dumpSections, header: {}, java: [] });
}

const sha256 = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** The page around the data, as heaptap writes it. */
export function page({ data }, { block = 16 << 20, staticPart = "<h1>Summary</h1>" } = {}) {
  const js = dist("report.js");
  const css = dist("report.css");
  const own = "#heaptap-static{max-width:76rem;margin:auto}@media screen{html.heaptap-live #heaptap-static{display:none}}";
  const csp = `default-src 'none'; script-src ${sha256(js)}; style-src ${sha256(own)} ${sha256(css)}; img-src data: blob:; worker-src blob:; base-uri 'none'; form-action 'none'`;
  let blocks = "";
  for (let at = 0; at < data.length; at += block) {
    const part = data.subarray(at, at + block);
    blocks += `<script type="application/octet-stream" class="heaptap-data" data-bytes="${part.length}">${deflateSync(part).toString("base64")}</script>\n`;
  }
  return `<!doctype html>
<html lang="en"><head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${csp}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>heaptap</title>
<style>${own}</style><style>${css}</style>
</head><body>
<main id="heaptap-static">${staticPart}</main>
<div id="heaptap-app"></div>
${blocks}<script>${js}</script>
</body></html>
`;
}
