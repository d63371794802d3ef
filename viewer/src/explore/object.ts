// The view of one object.

import { button, h, name, sentence } from "../dom";
import { bytes, counted, percent, thousands } from "../units";
import { answers, ask, kept, messageOf, total, type FieldRow, type Meta, type ObjectFacts, type Path, type ReferrerRow, type Table } from "./api";
import { growingTable } from "./more";
import { objectPath } from "./path";
import { picture, pixelFacts } from "./pictures";
import { encode, type Place } from "./place";
import { facts } from "./overview";
import { classLink, objectColumns, objectLink, PAGE_ROWS, retained, section, size, table, verdictTag } from "./rows";

/** Maximum width and height of the picture of one bitmap. */
const MAX_PICTURE_SIDE = 2048;

/** Returns the view of the object of a place. */
export async function objectView(place: Place, meta: Meta, signal: AbortSignal): Promise<HTMLElement> {
  const id = place.id ?? "";
  const askReferrers = (offset: number, limit: number): Promise<Table<ReferrerRow>> => ask("referrers", { id, offset, limit }, signal);
  const [of, fields, referrers, path] = await Promise.all([
    ask<ObjectFacts>("object", { id }, signal),
    ask<Table<FieldRow>>("fields", { id, offset: place.offset ?? 0, limit: PAGE_ROWS }, signal),
    askReferrers(0, PAGE_ROWS),
    ask<Path>("path", { id }, signal),
  ]);
  return h(
    "div",
    null,
    h("h2", null, name(of.name), " ", h("code", null, of.id), " ", of.root && h("span", { class: "tag" }, `GC root: ${of.root}`), " ", verdictTag(of.verdict)),
    of.verdict.reason !== "" && h("p", null, sentence(of.verdict.reason)),
    of.text !== undefined && h("blockquote", null, name(of.text)),
    of.bitmap && h("figure", { class: "picture" }, picture(of.id, of.bitmap, meta, MAX_PICTURE_SIDE), h("figcaption", null, ...pixelFacts(of.id, of.bitmap))),
    h("div", { class: "columns" }, section("Object", objectFacts(of, meta, signal)), section(pathTitle(path), objectPath(path))),
    fieldTable(of, fields, place, meta),
    section(
      `Referrers (${thousands(referrers.total + (referrers.left_out ?? 0))})`,
      growingTable<ReferrerRow>(
        {
          ...referrers,
          label: "Referrers",
          noun: "object",
          empty: "No object refers to it.",
          columns: [{ title: "Reference", cell: (row) => h("code", null, name(row.reference)) }, ...objectColumns<ReferrerRow>(false)],
          load: askReferrers,
        },
        signal,
      ),
    ),
  );
}

function objectFacts(of: ObjectFacts, meta: Meta, signal: AbortSignal): HTMLElement {
  const whole = total(meta.reachable);
  const share = whole > 0 ? ` (${percent(total(of.retained), whole)} of the heap)` : "";
  const others = (of.retained?.count ?? 1) - 1;
  const dominates = counted(others, "object");
  const hasList = others > 0 && answers("objects", { dominated: of.id });
  return facts([
    ["Shallow", size(of.shallow_bytes)],
    ["Native", size(of.native_bytes)],
    ["Retained", h("span", null, retained(of.retained), of.retained && share)],
    ["Class", classLink(of.class)],
    ["Superclasses", of.superclasses.length > 0 && h("span", null, ...of.superclasses.map((each) => h("div", null, name(each))))],
    ["Immediate dominator", of.dominators[0] ? objectLink(of.dominators[0]) : "none"],
    ["Dominates", hasList ? h("a", { href: encode({ view: "dominators", id: of.id }) }, dominates) : dominates],
    ["Largest part", others > 0 && kept() === null && bigDrop(of.id, signal)],
    ["Allocated at", of.allocated_at.length > 0 && h("span", null, ...of.allocated_at.map((frame) => h("div", null, name(frame))))],
  ]);
}

function fieldTable(of: ObjectFacts, fields: Table<FieldRow>, place: Place, meta: Meta): HTMLElement {
  const kind = of.length === null ? "Fields" : "Elements";
  return section(
    kind,
    table<FieldRow>({
      ...fields,
      label: kind,
      noun: of.length === null ? "field" : "element",
      place,
      sort: "",
      empty: meta.contents ? "None." : "None, or hidden.",
      columns: [
        { title: "Name", cell: (row) => h("span", null, row.is_static && h("span", { class: "soft" }, "static "), name(row.name ?? "?")) },
        { title: "Value", cell: (row) => (row.object ? objectLink(row.object) : name(row.value ?? "")) },
        { title: "Type", minor: true, cell: (row) => name(row.type_name ?? "") },
        { title: "Declared in", minor: true, cell: (row) => name(row.declared_in ?? "") },
        { title: "Retained", numeric: true, cell: (row) => (row.object ? retained(row.object.retained) : "") },
      ],
    }),
  );
}

function pathTitle(path: Path): string {
  if (path.steps.length === 0) return "Path: unreachable";
  return `Shortest path from a GC root (${counted(path.length, "step")})`;
}

/** Returns a button that opens the object where the retained bytes of an object are. */
function bigDrop(id: string, signal: AbortSignal): HTMLElement {
  const result = h("span", { class: "soft", role: "status" }, " follows the largest dominated object as long as it retains at least half of the one above");
  const open = async (): Promise<void> => {
    try {
      const at = await ask<ObjectFacts>("drop", { id }, signal);
      if (at.id !== id) location.hash = encode({ view: "object", id: at.id });
      else result.textContent = ` This object is the one: it retains ${bytes(total(at.retained))}, and no object that it dominates retains half of that.`;
    } catch (error) {
      if (!signal.aborted) result.textContent = ` ${messageOf(error)}`;
    }
  };
  return h("span", null, button("Next big drop", { title: "Key: b", "data-key": "b", onclick: () => void open() }), result);
}
