// Decodes the page's data blocks to a Profile: base64, inflate, varints (viewer/README.md). Rejects
// invalid data with messages for the page.

import { Offline } from "./explore/offline";
import { FORMAT, type Header } from "./format";
import { sanitize } from "./names";
import type { Dump, Frames, Functions, Library, Nodes, Profile } from "./profile";

/** Reason why the data cannot be shown. */
export class DataError extends Error {}

/** Cursor over a section. */
class Reader {
  private at = 0;
  constructor(private readonly bytes: Uint8Array) {}

  varint(): number {
    const { bytes } = this;
    let byte = bytes[this.at++]!;
    if (byte < 0x80) return byte;
    // Multiplication instead of shifts is exact up to 2^53.
    let value = byte & 0x7f;
    let factor = 128;
    for (;;) {
      byte = bytes[this.at++]!;
      if (byte === undefined) throw new DataError("the data ends within a number");
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
      factor *= 128;
    }
  }

  zigzag(): number {
    const value = this.varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  varints(into: Int32Array | Uint8Array): void {
    for (let i = 0; i < into.length; i++) into[i] = this.varint();
    this.check();
  }

  deltas(into: Int32Array): void {
    let value = 0;
    for (let i = 0; i < into.length; i++) into[i] = value += this.zigzag();
    this.check();
  }

  rest(): Uint8Array {
    return this.bytes.subarray(this.at);
  }

  /** Rejects reads beyond the end, which give 0. Called once per column. */
  check(): void {
    if (this.at > this.bytes.length) throw new DataError("a section of the data is truncated");
  }
}

declare global {
  interface Uint8ArrayConstructor {
    fromBase64?(text: string): Uint8Array<ArrayBuffer>;
  }
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function inflate(block: Uint8Array<ArrayBuffer>, into: Uint8Array): Promise<void> {
  const stream = new Blob([block]).stream().pipeThrough(new DecompressionStream("deflate"));
  const reader = stream.getReader();
  let at = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    if (at + value.length > into.length) throw new DataError("a data block is longer than its stated length");
    into.set(value, at);
    at += value.length;
  }
  if (at !== into.length) throw new DataError("a data block is shorter than its stated length");
}

/** Reads the data blocks and removes their elements from the page, to free their memory. */
export async function takeBlocks(document: Document): Promise<Uint8Array | null> {
  const elements = [...document.querySelectorAll<HTMLScriptElement>("script.heaptap-data")];
  if (elements.length === 0) return null;
  const lengths = elements.map((element) => Number(element.dataset["bytes"]));
  const total = lengths.reduce((sum, length) => sum + length, 0);
  if (!Number.isSafeInteger(total)) throw new DataError("a data block does not state its length");
  const data = new Uint8Array(total);
  let offset = 0;
  await Promise.all(
    elements.map((element, i) => {
      const into = data.subarray(offset, (offset += lengths[i]!));
      const block = fromBase64(element.textContent ?? "");
      element.remove();
      return inflate(block, into);
    }),
  );
  return data;
}

/** Header of the data, and its sections by name. */
export interface ReportData {
  header: Header;
  section(name: string): Uint8Array;
}

export function parseReport(data: Uint8Array): ReportData {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  if (data.length < 8 || String.fromCharCode(...data.subarray(0, 4)) !== "HTR1") {
    throw new DataError("the data is not a heaptap report");
  }
  const start = 8 + view.getUint32(4, true);
  const header = JSON.parse(new TextDecoder().decode(data.subarray(8, start))) as Header;
  if (header.format !== FORMAT) {
    throw new DataError(`the data has format ${header.format}, but this viewer supports only format ${FORMAT}`);
  }
  const sections = new Map(header.sections.map((section) => [section.name, section]));
  return {
    header,
    section(name) {
      const section = sections.get(name);
      if (!section) throw new DataError(`section ${name} of the data is missing`);
      const bytes = data.subarray(start + section.offset, start + section.offset + section.length);
      if (bytes.length !== section.length) throw new DataError("a section of the data is truncated");
      return bytes;
    },
  };
}

function readStrings(bytes: Uint8Array, count: number): string[] {
  const reader = new Reader(bytes);
  const lengths = new Int32Array(count);
  reader.varints(lengths);
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(reader.rest());
  const strings = new Array<string>(count);
  let at = 0;
  for (let i = 0; i < count; i++) strings[i] = text.substring(at, (at += lengths[i]!));
  return strings;
}

function readLibraries(bytes: Uint8Array, count: number, texts: string[]): Library[] {
  const reader = new Reader(bytes);
  const paths = new Int32Array(count);
  const buildIds = new Int32Array(count);
  reader.deltas(paths);
  reader.deltas(buildIds);
  return Array.from(paths, (path, i) => ({ path: texts[path] ?? "", buildId: texts[buildIds[i]!] ?? "" }));
}

function readFunctions(bytes: Uint8Array, count: number): Functions {
  const reader = new Reader(bytes);
  const functions: Functions = {
    count,
    name: new Int32Array(count),
    system: new Int32Array(count),
    library: new Int32Array(count),
    kind: new Uint8Array(count),
  };
  reader.deltas(functions.name);
  reader.deltas(functions.system);
  reader.deltas(functions.library);
  reader.varints(functions.kind);
  return functions;
}

function readFrames(bytes: Uint8Array, count: number): Frames {
  const reader = new Reader(bytes);
  const frames: Frames = {
    count,
    function: new Int32Array(count),
    file: new Int32Array(count),
    line: new Int32Array(count),
    inlined: new Uint8Array(count),
  };
  reader.deltas(frames.function);
  reader.deltas(frames.file);
  reader.varints(frames.line);
  reader.varints(frames.inlined);
  for (let i = 0; i < count; i++) frames.inlined[i]! &= 1;
  return frames;
}

function readNodes(bytes: Uint8Array, count: number): Nodes {
  const reader = new Reader(bytes);
  const parent = new Int32Array(count);
  const end = new Int32Array(count);
  const frame = new Int32Array(count);
  parent[0] = -1;
  frame[0] = -1;
  const pops = new Int32Array(Math.max(0, count - 1));
  reader.varints(pops);
  reader.varints(frame.subarray(1));
  let last = 0;
  for (let node = 1; node < count; node++) {
    // The previous node is the first candidate for the parent; each pop ends one subtree.
    for (let pop = pops[node - 1]!; pop > 0; pop--) {
      end[last] = node;
      last = parent[last]!;
      if (last < 0) throw new DataError("the callstacks in the data are not nested");
    }
    parent[node] = last;
    last = node;
  }
  for (; last >= 0; last = parent[last]!) end[last] = count;
  return { count, parent, end, frame };
}

function readDump(bytes: Uint8Array, header: Header, place: number, earlier: Dump[]): Dump {
  const facts = header.dumps[place]!;
  const reader = new Reader(bytes);
  const nodes = new Int32Array(facts.rows);
  let node = 0;
  for (let i = 0; i < nodes.length; i++) nodes[i] = node += reader.varint();
  reader.check();
  const columns: (Float64Array | Int32Array)[] = [];
  for (const measure of facts.measures) {
    const column = new Float64Array(facts.rows);
    for (let i = 0; i < column.length; i++) column[i] = reader.zigzag();
    reader.check();
    if (measure.from) {
      const other = columns[measure.from.measure]!;
      for (let i = 0; i < column.length; i++) column[i]! += measure.from.times * other[i]!;
    }
    columns.push(narrow(column));
  }
  const dump = { facts, nodes, columns };
  return facts.base === null || facts.base === undefined ? dump : addDelta(earlier[facts.base]!, dump);
}

/** Returns a copy of minimum size, because all dumps are in memory at once. */
function narrow(column: Float64Array): Float64Array | Int32Array {
  const integers = new Int32Array(column);
  for (let i = 0; i < column.length; i++) if (integers[i] !== column[i]) return column.slice();
  return integers;
}

/** Returns the sum of a dump and of the differences to it, row by row. */
function addDelta(base: Dump, delta: Dump): Dump {
  const nodes = new Int32Array(base.nodes.length + delta.nodes.length);
  const columns = delta.columns.map(() => new Float64Array(nodes.length));
  let rows = 0;
  let i = 0;
  let j = 0;
  while (i < base.nodes.length || j < delta.nodes.length) {
    const left = base.nodes[i] ?? Infinity;
    const right = delta.nodes[j] ?? Infinity;
    const node = Math.min(left, right);
    let any = false;
    for (let column = 0; column < columns.length; column++) {
      const value =
        (left === node ? base.columns[column]![i]! : 0) + (right === node ? delta.columns[column]![j]! : 0);
      columns[column]![rows] = value;
      any ||= value !== 0;
    }
    if (left === node) i += 1;
    if (right === node) j += 1;
    if (any) nodes[rows++] = node;
  }
  return {
    facts: delta.facts,
    nodes: nodes.slice(0, rows),
    columns: columns.map((column) => narrow(column.subarray(0, rows))),
  };
}

/** Returns the callstacks and dumps of the data; empty if it contains only Java heaps. */
export function readProfile({ header, section: sectionOf }: ReportData): Profile {
  const native = header.dumps.length > 0;
  const nothing = { strings: 0, libraries: 0, functions: 0, frames: 0, nodes: 1 };
  const counts = native ? header.counts : nothing;
  // Units can come from another tool.
  for (const { measures } of header.dumps) for (const measure of measures) measure.unit = sanitize(measure.unit).slice(0, 40);
  const section = (name: string): Uint8Array => (native ? sectionOf(name) : new Uint8Array());
  const texts = readStrings(section("strings"), counts.strings);
  const dumps: Dump[] = [];
  for (let i = 0; i < header.dumps.length; i++) {
    dumps.push(readDump(section(`dump.${i}`), header, i, dumps));
  }
  return {
    header,
    texts,
    libraries: readLibraries(section("libraries"), counts.libraries, texts),
    functions: readFunctions(section("functions"), counts.functions),
    frames: readFrames(section("frames"), counts.frames),
    nodes: readNodes(section("nodes"), counts.nodes),
    dumps,
  };
}

/** Returns what unpacks the answers about a Java heap of the data. */
export function readJava({ section }: ReportData, name: string): () => Promise<Offline> {
  const packed = section(name);
  return () => Offline.unpack(packed);
}
