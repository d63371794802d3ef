// Views of the heap: each returns its content for a place.

import type { Meta } from "./api";
import { compareView } from "./compare";
import { leakView, wasteView } from "./findings";
import { flameView } from "./flame";
import { classes, dominators, objects } from "./lists";
import { objectView } from "./object";
import { overview } from "./overview";
import { bitmaps } from "./pictures";
import type { Place } from "./place";
import { search } from "./search";

export type Render = (place: Place, meta: Meta, signal: AbortSignal) => Promise<HTMLElement>;

/** Views that every page has. */
export const RENDER: Partial<Record<Place["view"], Render>> = {
  overview,
  leaks: (place, _meta, signal) => leakView(place, signal),
  classes,
  objects,
  dominators,
  flame: (place, _meta, signal) => flameView(place, signal),
  strings: (place, _meta, signal) => search("strings", place, signal),
  arrays: (place, _meta, signal) => search("arrays", place, signal),
  bitmaps,
  waste: (_place, _meta, signal) => wasteView(signal),
  compare: compareView,
  object: objectView,
};
