// Types of the data block, which viewer/README.md describes.

export const FORMAT = 1;

export interface Fact {
  name: string;
  value: string;
}

export interface Warning {
  kind: string | null;
  message: string;
  help?: string | null;
  /** Indexes in `dumps`. */
  dumps?: number[];
}

export interface Part {
  name: string;
  bytes: number | null;
  how?: string | null;
}

export interface Where {
  total: number | null;
  of?: string | null;
  at?: string | null;
  parts: Part[];
}

export interface Unseen {
  what: string;
  why: string;
  bytes?: number | null;
}

export interface MissingLibrary {
  path: string;
  build_id: string | null;
  frames: number;
  share: number | null;
}

export interface Symbolization {
  frames_named: number;
  frames_unnamed: number;
  frames_with_lines?: number;
  leaf_share_unnamed?: number | null;
  share_unnamed?: number | null;
  missing: MissingLibrary[];
}

export interface MeasureFacts {
  name: string;
  unit: string;
  view: "space" | "objects" | "alloc_space" | "alloc_objects" | null;
  total: number;
  from: { measure: number; times: number } | null;
  /** For summed callsites: the view of bytes whose small samples this measure counts. Not shown. */
  small_of?: "space" | "alloc_space" | null;
}

export interface DumpFacts {
  number: number;
  label: string | null;
  series: number;
  pid: number | null;
  process: string | null;
  heap: string | null;
  time_ms: number | null;
  wall_ms: number | null;
  interval: number;
  orig_interval: number;
  counts_samples: boolean;
  kind: "cumulative" | "at-maximum" | "allocations-only" | string;
  flags: string[];
  unfinished: boolean;
  callsites: number;
  measures: MeasureFacts[];
  default_measure: number;
  base: number | null;
  rows: number;
}

export interface Series {
  pid: number | null;
  process: string | null;
  heap: string | null;
  start_ms: number | null;
  from_startup: boolean | null;
  after: number | null;
  dumps: number[];
  /** Index of the dump that is shown first. */
  shown: number;
}

export interface GrowthSite {
  function: string;
  library: string;
  allocators?: string[];
  per_round: { value: number; low: number; high: number };
  verdict: "confirmed" | "within-sampling-error" | "inconclusive" | string;
  says: string;
}

export interface Growth {
  series: number;
  per: string;
  rounds: number;
  sites: GrowthSite[];
}

export interface DiffFacts {
  before: string;
  after: string;
  pairs: { before: number | null; after: number | null }[];
  same_recording: boolean;
  per: { times: number; word: string } | null;
}

export interface JavaFacts {
  section: string;
  name: string;
  /** Name of the dump: its input, and its label or number. */
  dump: string;
  number: number | null;
  label: string | null;
  pid: number | null;
  process: string | null;
  time_ms: number | null;
  wall_ms: number | null;
  objects: number;
  shallow: number;
  native: number;
  /** Bytes of unreachable objects, Java and native. */
  unreachable: number;
  /** Name of the dump that it is compared with. */
  compared_with?: string | null;
  /** The most severe first. */
  leaks: { class: string; retained: number }[];
}

/** Readings in chronological order, in columns. `breaks` are rows that are not connected to the previous row. */
export interface Rows {
  ms: number[];
  /** Indexes in `words`. */
  source: number[];
  breaks: number[];
  columns: Record<string, (number | null)[]>;
}

/** One run of a process. */
export interface Life {
  pid: number;
  process: string;
  restarted: boolean;
  from_ms: number;
  to_ms: number;
  gone_ms: number | null;
  resident: Rows;
  parts: Rows;
  graphics: Rows;
  java_heap: Rows;
  collections: Rows;
}

export interface Note {
  ms: number;
  until_ms: number | null;
  pid: number;
  text: string;
}

export interface TimelineFacts {
  from_ms: number;
  to_ms: number;
  words: string[];
  processes: Life[];
  system: Rows;
  labels: Note[];
  /** Readings taken of a process for a label; an empty text stands for the end. */
  captures?: Note[];
  ours: Note[];
  unread: { source: number; pid: number; why: string }[];
  cost: { source: number; readings: number; device_ms: number; bytes: number }[];
  thinned_from: number | null;
}

/** Readings of one of several recordings, on its own clock. */
export interface RecordedFacts {
  name: string;
  /** Range of its dumps; `to` is exclusive. */
  from: number;
  to: number;
  timeline: TimelineFacts;
}

/** Values of a process at one time, as text. */
export interface ReconciledFacts {
  at: string;
  process: string;
  pid: number;
  rows: { name: string; bytes: number; amount: string; apart: string | null; remark: string }[];
  differences: { from: string; to: string; amount: string; about: string; causes: { about: string; remedy: string | null }[] }[];
  missing: { figure: string; why: string; help: string | null }[];
}

export interface Header {
  format: number;
  tool: string;
  made_wall_ms?: number | null;
  title: string;
  facts: Fact[];
  warnings: Warning[];
  where: Where | null;
  unseen: Unseen[];
  commands?: { what: string; command: string }[];
  symbolization: Symbolization | null;
  counts: { strings: number; libraries: number; functions: number; frames: number; nodes: number };
  sections: { name: string; offset: number; length: number }[];
  dumps: DumpFacts[];
  series: Series[];
  growth?: Growth[] | null;
  diff?: DiffFacts | null;
  /** Summed callsites. `functions`: summed by function too; `bytes`: their part of the first measure of each dump. */
  folded?: { kept: number; of: number; functions: boolean; libraries: boolean; bytes: number[]; command: string } | null;
  java?: JavaFacts[] | null;
  timeline?: TimelineFacts | null;
  timelines?: RecordedFacts[] | null;
  reconcile?: ReconciledFacts[] | null;
}
