// Bitmaps in `heaptap explore`, compared pixel by pixel with what the dump was made of: pixels in the Java
// heap of each config, and the image files that `am dumpheap -b` adds.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { explorers, shown, skip } from "./explorer.mjs";
import { bitmapHprof } from "./hprof.mjs";

const WIDTH = 24;
const HEIGHT = 10;

let all;
before(async () => (all = await explorers()));
after(() => all.close());

/** Pixels with every alpha the test needs: opaque in the upper half. */
function pattern(isOpaque) {
  const pixels = [];
  for (let y = 0; y < HEIGHT; y++) {
    for (let x = 0; x < WIDTH; x++) pixels.push([x * 10, 255 - y * 20, (x * y) % 256, isOpaque || y < HEIGHT / 2 ? 255 : 40 + x * 5]);
  }
  return pixels;
}

const CONFIGS = {
  ALPHA_8: { bytes: (pixels) => pixels.map(([, , , alpha]) => alpha), shows: ([, , , alpha]) => [0, 0, 0, alpha] },
  RGB_565: {
    bytes: (pixels) => pixels.flatMap(([red, green, blue]) => [((green >> 2) << 5) & 255 | (blue >> 3), (red >> 3) << 3 | green >> 5]),
    shows: ([red, green, blue]) => [(red >> 3) * 8 + (red >> 5), (green >> 2) * 4 + (green >> 6), (blue >> 3) * 8 + (blue >> 5), 255],
  },
  ARGB_8888: {
    bytes: (pixels) => pixels.flatMap(([red, green, blue, alpha]) => [...[red, green, blue].map((color) => Math.round((color * alpha) / 255)), alpha]),
    shows: (pixel) => pixel,
  },
};

/** Returns an image file with the pattern, made by the browser. */
async function file(page, type) {
  const bytes = await page.evaluate(
    async ([pixels, width, height, type]) => {
      const canvas = Object.assign(document.createElement("canvas"), { width, height });
      canvas.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(pixels.flat()), width, height), 0, 0);
      const blob = await new Promise((done) => canvas.toBlob(done, `image/${type}`, 0.9));
      return [...new Uint8Array(await blob.arrayBuffer())];
    },
    [pattern(true), WIDTH, HEIGHT, type],
  );
  return Buffer.from(bytes);
}

/** Returns the pixels of the picture on the page of a bitmap. */
async function pixels(page, url, id) {
  await page.goto(`${url}#/object/${id}`);
  await shown(page, id);
  const element = page.locator("figure canvas, figure img");
  await element.waitFor();
  return element.evaluate((shown) => {
    const [width, height] = shown instanceof HTMLCanvasElement ? [shown.width, shown.height] : [shown.naturalWidth, shown.naturalHeight];
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    const context = canvas.getContext("2d");
    context.drawImage(shown, 0, 0);
    return { width, height, data: [...context.getImageData(0, 0, width, height).data] };
  });
}

test("bitmaps of every storage are shown pixel by pixel", { skip }, async () => {
  const maker = await all.chromium.context.newPage();
  const files = {};
  for (const type of ["png", "jpeg", "webp"]) files[type] = await file(maker, type);
  const bitmaps = [
    ...Object.values(CONFIGS).map(({ bytes }) => ({ width: WIDTH, height: HEIGHT, buffer: bytes(pattern(false)) })),
    ...Object.values(files).map((file) => ({ width: WIDTH, height: HEIGHT, file })),
    // Equal to the first file; then one whose file is of another size, and one without a picture.
    { width: WIDTH, height: HEIGHT, file: files.png },
    { width: WIDTH + 1, height: HEIGHT, file: files.png },
    { width: 1000, height: 1000 },
  ];
  const { hprof, ids } = bitmapHprof(bitmaps);
  const path = join(all.folder, "bitmaps.hprof");
  writeFileSync(path, hprof);
  const { page, url } = await all.open(path);

  await page.click("nav.tabs >> text=Bitmaps");
  await page.waitForFunction(() => document.querySelectorAll(".gallery canvas, .gallery img").length === 7);
  const cards = await page.locator(".gallery > li").allInnerTexts();
  assert.equal(cards.length, 8);
  // The others are in a table.
  assert.match(await page.textContent(".explored"), /does not have the pixels of these bitmaps, so equal ones are unknown/);
  const others = await page.locator(".wide[aria-label='Bitmaps without pixels'] tbody tr").allInnerTexts();
  assert.equal(others.length, bitmaps.length - 8);
  assert.match(others[0], /1,000 × 1,000\s+about 3\.8 MiB/);

  const expected = pattern(false);
  for (const [at, [config, { shows }]] of Object.entries(CONFIGS).entries()) {
    const found = await pixels(page, url, ids[at]);
    assert.match(await page.textContent("figure"), new RegExp(`24 × 10 pixels, 420 dpi, .* java, ${config}`));
    assert.deepEqual([found.width, found.height], [WIDTH, HEIGHT]);
    for (const [place, pixel] of expected.entries()) {
      const is = found.data.slice(4 * place, 4 * place + 4);
      const should = shows(pixel);
      // A canvas multiplies colors by alpha, which rounds them.
      const error = should[3] === 255 ? 0 : Math.ceil(255 / should[3]);
      for (let i = 0; i < 4; i++) assert.ok(Math.abs(is[i] - should[i]) <= (i === 3 ? 0 : error), `${config} pixel ${place}: ${is} instead of ${should}`);
    }
  }
  for (const [at, type] of Object.keys(files).entries()) {
    const found = await pixels(page, url, ids[3 + at]);
    assert.match(await page.textContent("figure"), new RegExp(`native, ${type}`));
    const should = await maker.evaluate(
      async ([bytes, type]) => {
        const bitmap = await createImageBitmap(new Blob([new Uint8Array(bytes)], { type: `image/${type}` }));
        const canvas = Object.assign(document.createElement("canvas"), { width: bitmap.width, height: bitmap.height });
        const context = canvas.getContext("2d");
        context.drawImage(bitmap, 0, 0);
        return [...context.getImageData(0, 0, bitmap.width, bitmap.height).data];
      },
      [[...files[type]], type],
    );
    assert.deepEqual(found.data, should, type);
    if (type === "png") assert.deepEqual(found.data, pattern(true).flat());
  }

  // The two equal ones name each other.
  await page.goto(`${url}#/object/${ids[3]}`);
  await page.click("figure >> text=2 equal");
  await shown(page, "Bitmaps with the same pixels");
  await page.waitForFunction(() => document.querySelectorAll(".gallery img").length === 2);
  for (const id of [ids[3], ids[6]]) assert.ok((await page.textContent(".gallery")).includes(id));

  await page.goto(`${url}#/object/${ids[7]}`);
  await page.waitForFunction(() => document.querySelector("figure")?.textContent.includes("not in the dump"));
  // The browser reports the answer 404 itself.
  assert.deepEqual(page.told.filter((text) => !text.includes("404")), []);
});

test("a redacted page has no picture", { skip }, async () => {
  const { hprof, ids } = bitmapHprof([{ width: 2, height: 1, buffer: [1, 2, 3, 4, 5, 6, 7, 8] }]);
  const path = join(all.folder, "redacted.hprof");
  writeFileSync(path, hprof);
  const { page, url } = await all.open(path, "--redact");
  await page.goto(`${url}#/bitmaps`);
  await shown(page, "Hidden");
  assert.equal(await page.locator("canvas, img").count(), 0);
  const status = await page.evaluate(async (id) => (await fetch(`api/picture?id=${id}`, { headers: { "X-Heaptap": "1" } })).status, ids[0]);
  assert.equal(status, 404);
});
