// Search in long lists: the server answers with what it found in a moment, and the page asks on until
// there is a screenful.

import { fill, h, name, put, sentence } from "../dom";
import { counted, thousands } from "../units";
import { answers, ask, kept, type Found, type FoundRow } from "./api";
import { MoreButton } from "./more";
import { encode, type Place } from "./place";
import { cells, head, objectColumns, PAGE_ROWS, wide, type ColumnOf } from "./rows";

type List = "objects" | "strings" | "arrays";

const TITLES: Record<List, string> = { objects: "Objects", strings: "Strings", arrays: "Arrays" };
/** Time in which the first rows are shown with the view; a rare text is searched for on the page. In ms. */
const FIRST_ROWS_TIMEOUT = 300;

/**
 * Returns the objects of a list that match the place's text: strings by text, others by class. A place with
 * the ID of a string has the strings that are equal to it.
 */
export async function search(list: List, place: Place, signal: AbortSignal): Promise<HTMLElement> {
  if (!answers("search", { in: list, equal: place.id })) return h("p", { class: "soft" }, sentence(`This file does not have a list of ${list}. To include it, use \`--contents\`.`));
  const body = h("tbody");
  const state = h("p", { class: "soft", role: "status" });
  const columns = columnsOf(list);
  const region = wide(TITLES[list], head({ columns, place, sort: "" }), body);
  let from: number | null = 0;
  let total = 0;
  let leftOut = 0;
  let shown = 0;

  /** Asks until there are as many rows more as on a page, or the list ends. */
  async function next(): Promise<void> {
    const goal = shown + PAGE_ROWS;
    while (from !== null && shown < goal && !signal.aborted) {
      const found: Found = await ask<Found>("search", { in: list, equal: place.id, text: place.filter, from, limit: goal - shown }, signal);
      put(body, ...found.rows.map((row) => h("tr", null, ...cells(columns, row))));
      shown += found.rows.length;
      ({ total, next: from } = found);
      leftOut = found.left_out ?? 0;
      describe(from !== null && shown < goal);
    }
  }

  function describe(isSearching: boolean): void {
    const all = counted(total, list.slice(0, -1));
    const end = from ?? total - leftOut;
    const searched = end < total ? `the ${from === null ? "largest" : "first"} ${thousands(end)} of ${all}` : all;
    if (place.filter || place.id) fill(state, isSearching ? "Searching … " : "", `${thousands(shown)} found in ${searched}`);
    else fill(state, shown < total ? `${thousands(shown)} of ${all}` : all, leftOut > 0 && ". This file does not have the others.");
    more.setEnd(from === null, region);
  }

  const more = new MoreButton(next, signal);
  await Promise.race([more.run(), new Promise((later) => setTimeout(later, FIRST_ROWS_TIMEOUT))]);
  return h(
    "div",
    null,
    place.id ? h("h2", null, "Equal strings") : h("h2", null, ...(place.filter ? [`${matching(list)} “`, name(place.filter), "”"] : [`${TITLES[list]}, by retained size`])),
    place.id && h("p", null, h("a", { href: encode({ view: list }) }, `All ${list}`)),
    h("div", { class: "paged" }, region),
    state,
    more.element,
  );
}

/** Returns what is found. A file has only the beginning of strings. */
function matching(list: List): string {
  if (list !== "strings") return `${TITLES[list]} whose class contains`;
  return kept() ? "Strings whose first 120 characters contain" : "Strings whose text contains";
}

function columnsOf(list: List): ColumnOf<FoundRow>[] {
  const length: ColumnOf<FoundRow> = {
    title: "Length",
    numeric: true,
    minor: true,
    hint: list === "strings" ? "Number of characters" : "Number of elements",
    cell: (row) => (row.length === null ? "" : thousands(row.length)),
  };
  const [object, ...sizes] = objectColumns<FoundRow>(false);
  return [object!, ...(list === "objects" ? [] : [length]), ...sizes, { title: "Heap", minor: true, cell: (row) => row.heap }];
}
