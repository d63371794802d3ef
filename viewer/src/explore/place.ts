// The place on the page: what is shown, in the part of the address after #. Each step of the user is an
// entry of the history.

export interface Place {
  view: View;
  /** Object ID. */
  id?: string;
  /** Class whose objects are listed. */
  class?: string;
  /** Rows of the class table. */
  by?: string;
  sort?: string;
  reverse?: boolean;
  filter?: string;
  offset?: number;
}

export const VIEWS = ["overview", "leaks", "classes", "objects", "dominators", "flame", "strings", "arrays", "bitmaps", "waste", "compare", "sql", "object"] as const;
export type View = (typeof VIEWS)[number];

/** Returns the address of a place. */
export function encode(place: Place): string {
  const query = new URLSearchParams();
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
  for (const name of ["class", "by", "sort", "filter"] as const) {
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
