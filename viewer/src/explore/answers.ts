// Answers of the server: src/page/explore_api/api.rs lists them.

export interface Size {
  count: number;
  java_bytes: number;
  native_bytes: number;
}

export interface Meta {
  /** Current step; empty if everything is built. */
  step: string;
  /** Number of the heap that the server has opened; other requests name it. A file does not have one. */
  generation?: number;
  /** Time without requests after which heaptap ends, in s. A file does not have it. */
  idle_seconds?: number;
  /** null before the heap is read. */
  heap: HeapFacts | null;
  out_of_memory: OutOfMemory | null;
  /** The earlier heap; null if there is none, or before it is compared. */
  before: HeapFacts | null;
  /** All reachable objects of both. */
  change: { before: Figures; after: Figures } | null;
  /** Why a heap cannot be read. */
  error: string | null;
  contents: boolean;
  /** Whether `sql` answers. */
  sql: boolean;
  objects: number;
  classes: number;
  roots: number;
  /** null before dominators are computed. */
  reachable: Size | null;
  unreachable: Size | null;
}

/** The OutOfMemoryError that caused the dump. */
export interface OutOfMemory {
  allocation_bytes: number;
  free_bytes: number;
  free_until_oom_bytes: number;
  /** null if contents are hidden. */
  message: string | null;
  /** The throwing frame first. */
  stack: string[];
}

export interface HeapFacts {
  path: string;
  number: number;
  dumps: number;
  label: string | null;
  source: string;
  version: string | null;
  process: string | null;
  pid: number | null;
  time: string | null;
  reason: string | null;
  /** Model of shallow sizes. */
  sizes: "dump" | "mat" | "art" | "hotspot";
  /** Kinds of references that are not followed. */
  excluded: string[];
  /** Whether objects are missing, so that others can look unreachable. */
  lacks_objects: boolean;
  warnings: { kind: string; message: string; help: string | null }[];
}

export interface Table<Row> {
  total: number;
  rows: Row[];
  /** Number of rows that a page that is a file does not have. */
  left_out?: number;
}

export interface ClassRow {
  name: string;
  count: number;
  shallow_bytes: number;
  native_bytes: number;
  retained: Size;
}

export interface ObjectRow {
  id: string;
  name: string;
  text?: string;
  shallow_bytes: number;
  native_bytes: number;
  /** null if the object is unreachable. */
  retained: Size | null;
}

export interface ObjectFacts extends ObjectRow {
  /** Class whose list has the object. */
  class: string;
  superclasses: string[];
  heap: string;
  root: string | null;
  dominators: ObjectRow[];
  depth: number;
  length: number | null;
  referrers: number;
  allocated_at: string[];
  bitmap: BitmapFacts | null;
  verdict: Verdict;
}

/** Whether an object should be gone. */
export interface Verdict {
  status: "leaking" | "not-leaking" | "unknown";
  certainty: "confirmed" | "likely" | "possible";
  reason: string;
}

export interface BitmapFacts {
  width: number;
  height: number;
  density: number | null;
  pixel_bytes: number;
  is_estimated: boolean;
  storage: string;
  /** null if the dump does not have the pixels. */
  format: string | null;
  /** Number of bitmaps with the same pixels, itself among them. */
  equal: number;
  /** Number that they share; null if there are no others. */
  group: number | null;
}

export interface BitmapRow extends ObjectRow {
  bitmap: BitmapFacts;
  /** Immediate dominator. */
  held_by: ObjectRow | null;
}

/** Pixels: `rgba`, or an image file. */
export interface Picture {
  width: number;
  height: number;
  format: "rgba" | "png" | "jpeg" | "webp";
  /** Base64. */
  data: string;
}

export interface FoundRow extends ObjectRow {
  length: number | null;
  heap: string;
}

export interface Found {
  total: number;
  /** Position at which the search goes on; null at the end. */
  next: number | null;
  rows: FoundRow[];
  /** Number of rows of the list that a page that is a file does not have. */
  left_out?: number;
}

export interface FieldRow {
  name: string | null;
  type_name: string | null;
  declared_in: string | null;
  is_static: boolean;
  value: string | null;
  object: ObjectRow | null;
}

export interface ReferrerRow extends ObjectRow {
  reference: string;
}

export interface PathStep extends ObjectRow {
  reference: string | null;
  left_out: number;
  verdict: Verdict;
}

export interface Path {
  root: string | null;
  steps: PathStep[];
  length: number;
}

export interface Cell extends Partial<ObjectRow> {
  above: number | null;
  bytes: number;
  own_bytes: number;
  rest: number;
  rest_bytes: number;
}

export interface FlameNode {
  /** Index of the parent; null at the top. */
  above: number | null;
  name: number;
  root: string | null;
  is_native: boolean;
  own_count: number;
  own_bytes: number;
  count: number;
  bytes: number;
}

export interface Flame {
  nodes: FlameNode[];
  names: string[];
  count: number;
  bytes: number;
  left_out: number;
  is_folded: boolean;
}

export interface Figures {
  count: number;
  shallow_bytes: number;
  native_bytes: number;
  retained_bytes: number;
  retained_native_bytes: number;
}

export interface ChangedClass {
  name: string;
  status: string;
  before: Figures;
  after: Figures;
}

/** Node of the dominator tree. */
export interface ChangedNode extends ChangedClass {
  depth: number;
}

export interface ChangedLeak {
  signature: string;
  what: string;
  class: string;
  /** Suspected references, from the root. */
  path: string;
  status: "new" | "gone" | "grown" | "shrunk" | "same" | "unknown";
  before_count: number;
  after_count: number;
  before_bytes: number;
  after_bytes: number;
}

/** Value of a row; with the ID of the object, if it is the number of one. */
export type SqlValue = null | number | string | { value: number; object: string };

export interface SqlRows {
  columns: string[];
  rows: SqlValue[][];
  is_cut: boolean;
}

/** Objects of one class that refer by one field to those of the row above. */
export interface HolderRow {
  above: number | null;
  name: string;
  count: number;
  root: string | null;
}

export interface RetainedBytes {
  bytes: number;
  native_bytes: number;
  count: number;
}

export interface LeakStep {
  id: string;
  class: string;
  /** Class objects are `class`. */
  shape: "class" | "instance" | "array";
  status: "leaking" | "not-leaking" | "unknown";
  reason: string;
  /** Reference to the next object; null for the last. */
  reference: string | null;
  /** Class that declares it, if it is not that of the object. */
  declared_in: string | null;
  suspect: boolean;
  repeated?: { text: string };
  left_out?: number;
}

export interface LeakGroup {
  signature: string;
  what: string;
  class: string;
  certainty: "confirmed" | "likely" | "possible";
  /** Known leak of Android, a manufacturer or a library, if it is one. */
  library: { reference: string; whose: string } | null;
  count: number;
  retained: RetainedBytes;
  root: string;
  path: LeakStep[];
  /** Number of steps in use that are left out before the path. */
  path_left_out: number;
  advice: string;
  leaks: { id: string; reason: string; retained: RetainedBytes }[];
}

export interface Leaks {
  objects: number;
  retained: RetainedBytes;
  groups_total: number;
  groups: LeakGroup[];
  not_analyzed: string[];
}

export interface Duplicate {
  count: number;
  each_bytes: number;
  wasted_bytes: number;
  class: string;
  length: number;
  value: string;
  example: string;
  /** A reference to one of them. */
  held_by: string | null;
}

export interface Duplicates {
  wasted_bytes: number;
  /** Those that waste most. */
  groups: Duplicate[];
}

export interface Room {
  count: number;
  class: string;
  used: number;
  capacity: number;
  wasted_bytes: number;
  example: string;
  held_by: string | null;
}

export interface Waste {
  wasted_bytes: number;
  strings: Duplicates;
  arrays: Duplicates;
  bitmaps: Duplicates;
  collections: { class: string; count: number; empty: number; wasted_bytes: number }[];
  oversized_collections: Room[];
  sparse_arrays: Room[];
  sparse_array_bytes: number;
  boxed: { class: string; count: number; bytes: number; wasted_bytes: number | null }[];
  not_analyzed: string[];
}
