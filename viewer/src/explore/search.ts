// Search in long lists: the server answers with what it found in a moment, and the page asks on until
// there is a screenful.

import { button, fill, h, name, put } from "../dom";
import { counted, thousands } from "../units";
import { ask, type Found, type FoundRow } from "./api";
import type { Place } from "./place";
import { head, objectColumns, PAGE_ROWS, type ColumnOf } from "./rows";

type List = "objects" | "strings" | "arrays";

const TITLES: Record<List, string> = { objects: "Objects", strings: "Strings", arrays: "Arrays" };

/** Returns the objects of a list that match the place's text: strings by text, others by class. */
export async function search(list: List, place: Place, signal: AbortSignal): Promise<HTMLElement> {
  const body = h("tbody");
  const state = h("p", { class: "soft", role: "status" });
  const more = button("Show more", { onclick: () => void next() });
  let from: number | null = 0;
  let total = 0;
  let shown = 0;
  const columns = columnsOf(list);

  /** Asks until there are as many rows more as on a page, or the list ends. */
  async function next(): Promise<void> {
    more.disabled = true;
    const goal = shown + PAGE_ROWS;
    while (from !== null && shown < goal && !signal.aborted) {
      const found: Found = await ask<Found>("search", { in: list, text: place.filter, from, limit: goal - shown }, signal);
      put(body, ...found.rows.map((row) => h("tr", null, ...columns.map((column) => h("td", { class: column.numeric ? "n" : null }, column.cell(row))))));
      shown += found.rows.length;
      total = found.total;
      from = found.next;
      describe(from !== null && shown < goal);
    }
    describe(false);
    more.disabled = false;
  }

  function describe(isSearching: boolean): void {
    const of = counted(total, list.slice(0, -1));
    const looked = from === null ? of : `the first ${thousands(from)} of ${of}`;
    if (place.filter) fill(state, isSearching ? "Searching … " : "", `${thousands(shown)} found in ${looked}`);
    else fill(state, from === null ? of : `${thousands(shown)} of ${of}`);
    more.hidden = from === null;
  }

  // The first rows are shown with the view; a rare text is searched for on the page.
  const started = next();
  await Promise.race([started, new Promise((later) => setTimeout(later, 300))]);
  started.catch((error: unknown) => {
    if (!signal.aborted) fill(state, String(error));
  });
  const by = list === "strings" ? "text contains" : "class contains";
  return h(
    "div",
    null,
    h("h2", null, TITLES[list], ...(place.filter ? [` whose ${by} “`, name(place.filter), "”"] : [", by retained size"])),
    h(
      "div",
      { class: "paged" },
      h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": TITLES[list] }, h("table", { "aria-label": TITLES[list] }, h("thead", null, head({ columns, place, sort: "" })), body)),
    ),
    state,
    more,
  );
}

function columnsOf(list: List): ColumnOf<FoundRow>[] {
  const length: ColumnOf<FoundRow> = {
    title: "Length",
    numeric: true,
    hint: list === "strings" ? "Number of characters" : "Number of elements",
    cell: (row) => (row.length === null ? "" : thousands(row.length)),
  };
  const [object, ...sizes] = objectColumns<FoundRow>(false);
  return [object!, ...(list === "objects" ? [] : [length]), ...sizes, { title: "Heap", cell: (row) => row.heap }];
}
