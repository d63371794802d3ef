// Values of a view: the self and total values of each node, for a measure of a dump or for the difference
// of two dumps. Computed once per selection, then only read.

import { accumulate, dense, type Dump, type Nodes, type Profile } from "./profile";
import type { Selection } from "./select";

/** Value for the width of boxes in a difference. */
export type DiffWidth = "after" | "before" | "change";

/** Column over all nodes with self values. Totals of subtrees are computed on demand, because many columns
 * are only used as a whole. */
export class Column {
  private subtrees: Float64Array | null = null;
  private all: number | null = null;

  constructor(
    private readonly nodes: Nodes,
    readonly self: Float64Array,
  ) {}

  get total(): Float64Array {
    return (this.subtrees ??= accumulate(this.nodes, this.self.slice()));
  }

  /** Sum over all nodes. */
  get sum(): number {
    if (this.all === null) {
      let sum = 0;
      for (let node = 0; node < this.self.length; node++) sum += this.self[node]!;
      this.all = sum;
    }
    return this.all;
  }
}

/** Returns the self values of a measure of a dump, filtered. */
function column(profile: Profile, dump: Dump, measure: number, kept: Uint8Array): Column {
  const self = dense(profile, dump, measure);
  for (let node = 0; node < self.length; node++) if (!kept[node]) self[node] = 0;
  return new Column(profile.nodes, self);
}

/** Values of the shown dump or difference. */
export interface Shown {
  after: Column;
  /** Other side of a difference; otherwise null. */
  before: Column | null;
  /** Widths: not negative, and the sum of children is at most that of their parent. */
  self: Float64Array;
  weight: Float64Array;
}

export function shownValues(
  profile: Profile,
  after: Column,
  before: Column | null,
  width: DiffWidth,
): Shown {
  const own = width === "before" && before ? before.self : after.self;
  let self = own;
  if (before && width === "change") {
    self = new Float64Array(own.length);
    for (let i = 0; i < self.length; i++) self[i] = Math.abs(after.self[i]! - before.self[i]!);
  } else if (own.some((value) => value < 0)) {
    // Profiles of other tools can contain negative values, which do not have a width.
    self = own.map((value) => Math.max(0, value));
  }
  const weight =
    self === after.self
      ? after.total
      : before && self === before.self
        ? before.total
        : accumulate(profile.nodes, self.slice());
  return { after, before, self, weight };
}

/** Maximum number of cached columns: four measures of two dumps, three columns each for increase and
 * decrease, and the small samples of both. With fewer, a table of differences would compute them again
 * for every row. */
const MAX_COLUMNS = 20;

/** Columns of dumps and measures for one selection, computed on demand. */
export class Columns {
  private readonly made = new Map<string, Column>();
  constructor(
    private readonly profile: Profile,
    private readonly selection: Selection,
  ) {}

  get(place: number, measure: number): Column {
    return this.derived(`${place}.${measure}`, () =>
      column(this.profile, this.profile.dumps[place]!, measure, this.selection.kept),
    );
  }

  /** Returns a column that is computed from others. */
  derived(key: string, make: () => Column): Column {
    let made = this.made.get(key);
    if (!made) {
      made = make();
      if (this.made.size >= MAX_COLUMNS) this.made.delete(this.made.keys().next().value!);
      this.made.set(key, made);
    }
    return made;
  }
}
