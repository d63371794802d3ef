// Bitmaps as pictures. The server sends pixels or an image file, and the browser draws them when they are
// scrolled into view.

import { button, fill, h, name, put } from "../dom";
import { bytes, counted, thousands } from "../units";
import { ask, type BitmapFacts, type BitmapRow, type Meta, type Picture, type Table } from "./api";
import { encode, type Place } from "./place";
import { objectLink, PAGE_ROWS, retained } from "./rows";

/** Maximum width and height of a picture in the gallery. */
const SMALL = 256;

/** Returns the gallery: all bitmaps, or those with the same pixels as one. */
export async function bitmaps(place: Place, meta: Meta, signal: AbortSignal): Promise<HTMLElement> {
  const gallery = h("ul", { class: "gallery" });
  const state = h("p", { class: "soft", role: "status" });
  const more = button("Show more", { onclick: () => void next() });
  let shown = 0;
  async function next(): Promise<void> {
    const answer = await ask<Table<BitmapRow>>("bitmaps", { equal: place.id, offset: shown, limit: PAGE_ROWS }, signal);
    put(gallery, ...answer.rows.map((row) => card(row, meta)));
    shown += answer.rows.length;
    fill(state, shown === answer.total ? counted(answer.total, "bitmap") : `${thousands(shown)} of ${counted(answer.total, "bitmap")}`);
    more.hidden = shown === answer.total;
  }
  await next();
  if (shown === 0) return h("p", { class: "soft" }, "The heap has no bitmaps.");
  return h(
    "div",
    null,
    h("h2", null, place.id ? "Bitmaps with the same pixels" : "Bitmaps, largest first"),
    place.id && h("p", null, h("a", { href: encode({ view: "bitmaps" }) }, "All bitmaps")),
    gallery,
    state,
    more,
  );
}

function card(row: BitmapRow, meta: Meta): HTMLElement {
  return h(
    "li",
    { class: "picture" },
    picture(row.id, row.bitmap, meta, SMALL),
    h("p", null, objectLink(row)),
    h("p", { class: "soft" }, ...pixelFacts(row.id, row.bitmap)),
    h("p", { class: "soft" }, retained(row.retained), " retained", row.held_by ? ", held by " : "", row.held_by && objectLink(row.held_by)),
  );
}

/** Returns width, height and so on, with a link to the equal bitmaps. */
export function pixelFacts(id: string, of: BitmapFacts): (Node | string)[] {
  const words = [
    of.width > 0 ? `${thousands(of.width)} × ${thousands(of.height)} pixels` : "size unknown",
    of.density === null ? null : `${of.density} dpi`,
    `${of.is_estimated ? "about " : ""}${bytes(of.pixel_bytes)} ${of.storage}`,
    of.format,
  ];
  const facts: (Node | string)[] = [words.filter((word) => word !== null).join(", ")];
  if (of.equal > 1) facts.push(" ", h("a", { class: "tag bad", href: encode({ view: "bitmaps", id }) }, `${thousands(of.equal)} equal`));
  return facts;
}

/** Returns a place for the picture, which is asked for when it is scrolled into view. */
export function picture(id: string, of: BitmapFacts, meta: Meta, most: number): HTMLElement {
  if (of.format === null) return h("div", { class: "canvas soft" }, "The dump does not have its pixels.");
  if (!meta.contents) return h("div", { class: "canvas soft" }, "Hidden");
  const frame = h("div", { class: "canvas" });
  const watch = new IntersectionObserver((seen) => {
    if (!seen.some((each) => each.isIntersecting)) return;
    watch.disconnect();
    ask<Picture>("picture", { id, most }).then(
      (answer) => draw(answer, id).then((drawn) => fill(frame, drawn)),
      (error: unknown) => fill(frame, name(error instanceof Error ? error.message : String(error))),
    );
  });
  watch.observe(frame);
  return frame;
}

/** Returns an element with the pixels. */
async function draw(of: Picture, id: string): Promise<HTMLElement> {
  const data = Uint8Array.from(atob(of.data), (letter) => letter.charCodeAt(0));
  const label = `Bitmap ${id}, ${of.width} by ${of.height} pixels`;
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
