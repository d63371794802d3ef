// The numbers of a view: for the chosen measure of a dump, or for the difference of two, what
// each node holds itself and with its subtree. Made once a choice, then only read.

import { accumulate, dense, type Dump, type Nodes, type Profile } from "./profile";
import type { Selection } from "./select";

/** Which width a box of a difference has. */
export type DiffWidth = "after" | "before" | "change";

/** A column over all nodes: what each holds itself; what it holds with its subtree is worked out
 * when first asked for, since many columns are only ever looked at as a whole. */
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

  /** Over all nodes. */
  get sum(): number {
    if (this.all === null) {
      let sum = 0;
      for (let node = 0; node < this.self.length; node++) sum += this.self[node]!;
      this.all = sum;
    }
    return this.all;
  }
}

/** A measure of a dump, filtered: self values of kept callsites. */
function column(profile: Profile, dump: Dump, measure: number, kept: Uint8Array): Column {
  const self = dense(profile, dump, measure);
  for (let node = 0; node < self.length; node++) if (!kept[node]) self[node] = 0;
  return new Column(profile.nodes, self);
}

/** What is shown. */
export interface Shown {
  after: Column;
  /** The other side of a difference. */
  before: Column | null;
  /** Widths: never negative, children never more than their parent. */
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
    // Another tool's profile of differences: what is negative has no width.
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

/** Columns that are kept: four measures of two dumps, what came and went between them in three
 * columns each, and the small samples of both; more are not looked at together. With less room a
 * table of differences would make them again for each of its rows. */
const MOST = 20;

/** Sums by measure of a dump under one selection, made when first asked for. */
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

  /** A column that is worked out from others. */
  derived(key: string, make: () => Column): Column {
    let made = this.made.get(key);
    if (!made) {
      made = make();
      if (this.made.size >= MOST) this.made.delete(this.made.keys().next().value!);
      this.made.set(key, made);
    }
    return made;
  }
}
