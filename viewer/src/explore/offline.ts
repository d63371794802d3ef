// The page as a file: answers that it has instead of a server.

import type { BitmapRow, ChangedClass, ClassRow, Found, FoundRow, ObjectRow, Size, Table } from "./answers";

/** What the file has, and how to see the rest. */
export interface Kept {
  /** Number of objects with all their facts. */
  objects: number;
  command: string;
}

/** Answers by operation and what it asks for. */
type Store = Record<string, unknown>;

/** Values that say which part of a list is asked for, and in which order. */
const PART = ["offset", "limit", "sort", "reverse", "filter", "most", "text", "from", "cells"];

type Values = Record<string, string | number | boolean | null | undefined>;

export class Offline {
  private constructor(private readonly store: Store) {}

  /** Returns the answers in packed data. */
  static async unpack(packed: Uint8Array): Promise<Offline> {
    const stream = new Blob([packed as BlobPart]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Offline((await new Response(stream).json()) as Store);
  }

  get kept(): Kept {
    return this.store["kept?"] as Kept;
  }

  has(operation: string, values: Values = {}): boolean {
    return key(operation, values) in this.store || this.equalBitmaps(operation, values) !== undefined;
  }

  /** Returns the bitmaps that are equal to one; undefined if they are not asked for, or there are none. */
  private equalBitmaps(operation: string, { equal }: Values): Table<BitmapRow> | undefined {
    const all = operation === "bitmaps" && equal ? (this.store["bitmaps?"] as Table<BitmapRow> | undefined) : undefined;
    const of = all?.rows.find((row) => row.id === equal)?.bitmap;
    if (!all || !of || of.group === null) return undefined;
    return { total: of.equal, rows: all.rows.filter((row) => row.bitmap.group === of.group) };
  }

  /** Returns an answer; undefined if the file does not have it. */
  answer(operation: string, values: Values): unknown {
    const known = this.store[key(operation, values)] ?? this.equalBitmaps(operation, values);
    if (known === undefined) return undefined;
    if (operation === "search") return found(known as Found, String(values.text ?? ""));
    if (typeof known === "object" && known !== null && "rows" in known) return part(operation, known as Table<unknown>, values);
    return known;
  }
}

function key(operation: string, values: Values): string {
  const named = Object.entries(values).filter(([name, value]) => !PART.includes(name) && value !== null && value !== undefined && value !== false);
  const words = named.map(([name, value]) => `${name}=${value === true ? "" : String(value)}`).sort();
  return `${operation}?${words.join("&")}`;
}

/** Returns a part of a list in an order, as the server does. */
function part(operation: string, whole: Table<unknown>, values: Values): Table<unknown> {
  let rows = [...whole.rows];
  const sort = String(values.sort ?? "");
  const wanted = String(values.filter ?? "").toLowerCase();
  const named = (row: unknown): string => (row as { name?: string }).name ?? "";
  if (wanted) rows = rows.filter((row) => named(row).toLowerCase().includes(wanted));
  const measure = MEASURES[operation]?.[sort];
  if (measure || sort === "name") {
    rows.sort((a, b) => (measure ? measure(b) - measure(a) : 0) || (named(a) < named(b) ? -1 : named(a) > named(b) ? 1 : 0));
  }
  const leftOut = whole.total - whole.rows.length;
  // A list that is not whole has one order only.
  if (values.reverse && leftOut === 0) rows.reverse();
  const offset = Number(values.offset ?? 0);
  const limit = Number(values.limit ?? 100);
  return { total: rows.length, rows: rows.slice(offset, offset + limit), ...(leftOut > 0 ? { left_out: leftOut } : {}) };
}

const bytesOf = (size: Size | null): number => (size ? size.java_bytes + size.native_bytes : 0);
type Measure = (row: never) => number;
const grew = (of: (side: ChangedClass["after"]) => number): Measure => (row: ChangedClass) => of(row.after) - of(row.before);

const MEASURES: Record<string, Record<string, (row: unknown) => number>> = {
  classes: {
    count: (row) => (row as ClassRow).count,
    shallow: (row) => (row as ClassRow).shallow_bytes,
    native: (row) => (row as ClassRow).native_bytes,
    retained: (row) => bytesOf((row as ClassRow).retained),
  },
  // They are stored in the order of retained bytes.
  objects: { shallow: (row) => (row as ObjectRow).shallow_bytes },
  changes: {
    count: grew((side) => side.count) as (row: unknown) => number,
    shallow: grew((side) => side.shallow_bytes) as (row: unknown) => number,
    native: grew((side) => side.native_bytes) as (row: unknown) => number,
    retained: grew((side) => side.retained_bytes + side.retained_native_bytes) as (row: unknown) => number,
  },
};

/** Returns the rows of a search whose text, or whose class without texts, contains a text. */
function found(known: Found, text: string): Found {
  const wanted = text.toLowerCase();
  const of = (row: FoundRow): string => (row.text ?? (row as ObjectRow).name).toLowerCase();
  const rows = known.rows.filter((row) => of(row).includes(wanted));
  return { total: known.total, next: null, rows, left_out: known.total - known.rows.length };
}
