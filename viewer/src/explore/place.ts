// The place on the page: what is shown, in the part of the address after #. Each step of the user is an
// entry of the history.

export interface Place {
  view: View;
  /** Object ID; signature of a leak; index of the box of a flame graph. */
  id?: string;
  /** Class whose objects are listed. */
  class?: string;
  /** Rows of the class table. */
  by?: string;
  sort?: string;
  reverse?: boolean;
  filter?: string;
  /** SQL statement. */
  sql?: string;
  offset?: number;
}

export const VIEWS = ["overview", "leaks", "classes", "objects", "dominators", "flame", "strings", "arrays", "bitmaps", "waste", "compare", "sql", "object"] as const;
export type View = (typeof VIEWS)[number];

/** Index of the heap on the page; null for the one on which the page opens. */
let heap: number | null = null;

/** Sets the heap whose places have addresses. */
export function setHeap(index: number | null): void {
  heap = index;
}

/** Returns whether an address is that of a place. */
export function isPlace(hash: string): boolean {
  return hash.startsWith("#/");
}

/** Returns the index of the heap of a place; null for the one on which the page opens. */
export function heapOf(hash: string): number | null {
  const index = new URLSearchParams(hash.split("?", 2)[1] ?? "").get("heap");
  return index !== null && /^\d{1,6}$/.test(index) ? Number(index) : null;
}

/** Returns the address of a place. */
export function encode(place: Place): string {
  const query = new URLSearchParams();
  if (heap !== null) query.set("heap", String(heap));
  const { view, id, ...rest } = place;
  for (const [name, value] of Object.entries(rest)) {
    if (value === undefined || value === "" || value === 0 || value === false) continue;
    query.set(name, value === true ? "1" : String(value));
  }
  const words = query.toString();
  return `#/${view}${id ? `/${encodeURIComponent(id)}` : ""}${words ? `?${words}` : ""}`;
}

/** Returns the place of an address; the overview if it has none. */
export function decode(hash: string): Place {
  const [path = "", words = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [view = "", id] = path.split("/", 2);
  const known = VIEWS.find((name) => name === view) ?? "overview";
  const place: Place = { view: known };
  if (id) place.id = safely(id);
  const query = new URLSearchParams(words);
  for (const name of ["class", "by", "sort", "filter", "sql"] as const) {
    const value = query.get(name);
    if (value) place[name] = value;
  }
  if (query.get("reverse")) place.reverse = true;
  const offset = Number(query.get("offset") ?? 0);
  if (Number.isInteger(offset) && offset > 0) place.offset = offset;
  return place;
}

function safely(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
