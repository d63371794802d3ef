// Bitmaps as pictures. The server sends pixels or an image file, and the browser draws them when they are
// scrolled into view.

import { fill, h, name, put } from "../dom";
import { bytes, counted, thousands } from "../units";
import { answers, ask, messageOf, type BitmapFacts, type BitmapRow, type Meta, type Picture, type Table } from "./api";
import { MoreButton } from "./more";
import { encode, type Place } from "./place";
import { cells, head, notInFile, objectLink, PAGE_ROWS, retained, size, wide, type ColumnOf } from "./rows";

/** Maximum width and height of a picture in the gallery. */
const MAX_SIDE = 256;

/** Returns the bitmaps, or those with the same pixels as one: pictures, and a table of the others. */
export async function bitmaps(place: Place, meta: Meta, signal: AbortSignal): Promise<HTMLElement> {
  const gallery = h("ul", { class: "gallery" });
  const body = h("tbody");
  const columns = columnsWithoutPicture();
  const others = h(
    "div",
    { class: "paged" },
    h("p", { class: "soft" }, meta.contents ? "The dump does not have the pixels of these bitmaps, so equal ones are unknown:" : "Hidden contents: the pixels of these bitmaps are not shown."),
    wide("Bitmaps without pixels", head({ columns, place, sort: "" }), body),
  );
  const lists = h("div", { role: "group", tabindex: -1, "aria-label": "Bitmaps" }, gallery, others);
  const state = h("p", { class: "soft", role: "status" });
  let shown = 0;
  let left: HTMLElement | null = null;
  async function next(): Promise<void> {
    const answer = await ask<Table<BitmapRow>>("bitmaps", { equal: place.id, offset: shown, limit: PAGE_ROWS }, signal);
    for (const row of answer.rows) {
      if (row.bitmap.format !== null && meta.contents) put(gallery, card(row, meta));
      else put(body, h("tr", null, ...cells(columns, row)));
    }
    shown += answer.rows.length;
    const isAll = shown >= answer.total || answer.rows.length === 0;
    fill(state, isAll ? counted(shown, "bitmap") : `${thousands(shown)} of ${counted(answer.total, "bitmap")}`);
    left = notInFile(answer.left_out, "bitmap");
    gallery.hidden = gallery.childElementCount === 0;
    others.hidden = body.childElementCount === 0;
    more.setEnd(isAll, lists);
  }
  const more = new MoreButton(next, signal);
  await next();
  if (shown === 0) return h("p", { class: "soft" }, "The heap has no bitmaps.");
  return h(
    "div",
    null,
    h("h2", null, place.id ? "Bitmaps with the same pixels" : "Bitmaps, largest first"),
    place.id && h("p", null, h("a", { href: encode({ view: "bitmaps" }) }, "All bitmaps")),
    lists,
    state,
    left,
    more.element,
  );
}

function columnsWithoutPicture(): ColumnOf<BitmapRow>[] {
  return [
    { title: "Object", cell: (row) => h("span", null, objectLink(row), " ", equalTag(row.id, row.bitmap)) },
    { title: "Immediate dominator", minor: true, cell: (row) => (row.held_by ? objectLink(row.held_by) : "") },
    { title: "Width × height", numeric: true, cell: ({ bitmap }) => sides(bitmap) },
    { title: "Pixels", numeric: true, minor: true, hint: "Bytes of the pixels", cell: ({ bitmap }) => h("span", null, bitmap.is_estimated && "about ", size(bitmap.pixel_bytes)) },
    { title: "Retained", numeric: true, cell: (row) => retained(row.retained) },
  ];
}

function card(row: BitmapRow, meta: Meta): HTMLElement {
  return h(
    "li",
    { class: "picture" },
    picture(row.id, row.bitmap, meta, MAX_SIDE),
    h("p", null, objectLink(row)),
    h("p", { class: "soft" }, ...pixelFacts(row.id, row.bitmap)),
    h("p", { class: "soft" }, retained(row.retained), " retained", row.held_by && ", dominated by ", row.held_by && objectLink(row.held_by)),
  );
}

function sides(of: BitmapFacts): string {
  return of.width > 0 ? `${thousands(of.width)} × ${thousands(of.height)}` : "unknown";
}

/** Returns width, height and so on, with a link to the equal bitmaps. */
export function pixelFacts(id: string, of: BitmapFacts): (Node | string)[] {
  const words = [
    of.width > 0 ? `${sides(of)} pixels` : "size unknown",
    of.density === null ? null : `${of.density} dpi`,
    `${of.is_estimated ? "about " : ""}${bytes(of.pixel_bytes)} ${of.storage}`,
    of.format,
  ];
  const facts = words.filter((word) => word !== null).join(", ");
  const tag = equalTag(id, of);
  return tag ? [facts, " ", tag] : [facts];
}

/** Returns the number of equal bitmaps, with a link to them if the page has the list; null without others. */
function equalTag(id: string, { equal }: BitmapFacts): HTMLElement | null {
  if (equal < 2) return null;
  const href = answers("bitmaps", { equal: id }) ? encode({ view: "bitmaps", id }) : null;
  return h(href ? "a" : "span", { class: "tag bad", href }, `${thousands(equal)} equal`);
}

/** Returns a place for the picture, which is asked for when it is scrolled into view. */
export function picture(id: string, of: BitmapFacts, meta: Meta, most: number): HTMLElement {
  if (of.format === null) return h("div", { class: "canvas soft" }, "The dump does not have its pixels.");
  if (!meta.contents) return h("div", { class: "canvas soft" }, "Hidden");
  const frame = h("div", { class: "canvas" });
  const watch = new IntersectionObserver((seen) => {
    if (!seen.some((each) => each.isIntersecting)) return;
    watch.disconnect();
    ask<Picture>("picture", { id, most })
      .then((answer) => draw(answer, `Bitmap ${id}, ${sides(of)} pixels`))
      .then(
        (drawn) => fill(frame, drawn),
        (error: unknown) => fill(frame, name(messageOf(error))),
      );
  });
  watch.observe(frame);
  return frame;
}

/** Returns an element with the pixels, of which there can be fewer than the bitmap has. */
async function draw(of: Picture, label: string): Promise<HTMLElement> {
  const data = Uint8Array.from(atob(of.data), (letter) => letter.charCodeAt(0));
  if (of.format === "rgba") {
    const canvas = h("canvas", { width: of.width, height: of.height, role: "img", "aria-label": label });
    const pixels = new ImageData(new Uint8ClampedArray(data.buffer), of.width, of.height);
    canvas.getContext("2d")?.putImageData(pixels, 0, 0);
    return canvas;
  }
  const address = URL.createObjectURL(new Blob([data], { type: `image/${of.format}` }));
  const image = h("img", { alt: label, src: address });
  try {
    await image.decode();
    return image;
  } catch {
    return h("span", { class: "soft" }, `The browser cannot decode this ${of.format}.`);
  } finally {
    URL.revokeObjectURL(address);
  }
}
