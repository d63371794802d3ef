// Summed callsites: a note with their part of the shown dump, and unchanged errors. Also the reasons in the
// growth card if there is nothing to compare.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { browser, inApp, look } from "./browser.mjs";
import { encode, FOUR } from "./encode.mjs";

let chromium;
before(async () => (chromium = await browser()));
after(() => chromium.close());

const small = (view) => ({ name: `small_${view}`, unit: "count", view: null, small_of: view });
const MEASURES = [...FOUR, small("space"), small("alloc_space")];
const row = (count, size, small) => ({ objects: count, space: size, alloc_objects: count, alloc_space: size, small_space: small, small_alloc_space: small });

const summed = (functions = true, libraries = true) =>
  encode({
    header: { measures: MEASURES, folded: { kept: 20, of: 70, functions, libraries, bytes: [50 * 100_001, 2 * 50 * 100_001], command: "heaptap report -l 0 rec" } },
    dumps: [1, 2].map((round) => ({
      label: `round-${round}`,
      stacks: [
        { stack: [{ name: "main", lib: "/x/libapp.so" }, { name: "load", lib: "/x/libapp.so" }], values: row(100, 100 * 4096, 100) },
        // Fifty blocks at their true size, of as many callsites.
        { stack: [{ name: "main", lib: "/x/libapp.so" }, { name: "(other)", lib: "/x/libhuge.so" }, { name: "grow", lib: "/x/libhuge.so" }], values: row(50, round * 50 * 100_001, 0) },
      ],
    })),
  });

test("32a: the first line has the number of summed callsites and their part of the dump", async () => {
  const page = await chromium.open(summed());
  const line = () => page.locator("main > div").first().innerText();
  assert.match(await line(), /This page lists 20 of 70 callsites individually\..*, 9\.5 MiB of 9\.9 MiB \(96\.1%\) in this dump: /);
  assert.match(await line(), /heaptap report -l 0 rec/);
  assert.match(await line(), /by library and function\./);
  await look(page, { dump: 0 });
  assert.match(await line(), /, 4\.8 MiB of 5\.2 MiB \(92\.4%\)/);
  await look(page, { tab: "info" });
  const info = await page.locator("#heaptap-panel").innerText();
  assert.doesNotMatch(info, /summed/, "it is shown once");
  await page.close();
  const bare = await chromium.open(summed(false));
  assert.match(await bare.locator("main > div").first().innerText(), /by library, without functions\./);
  await bare.close();
  const owners = await chromium.open(summed(false, false));
  assert.match(await owners.locator("main > div").first().innerText(), /by the library that owns the memory, without its callers\./);
  await owners.close();
});

test("32b: the error of sums is that of their callsites, and its column is not a measure", async () => {
  const page = await chromium.open(summed());
  const range = await inApp(page, (app) => app.stage.figure(app.scene, app.scene.measure, (column) => column.sum).range);
  // A hundred hits of 4 KiB are uncertain, and of the large blocks none is.
  assert.ok(range.high - range.value < 30 * 4096 && range.hits < 176, JSON.stringify(range));
  const options = await page.locator("option").allInnerTexts();
  assert.ok(options.length > 0 && options.every((text) => !/small/i.test(text)), options.join());
  assert.doesNotMatch(await page.locator("body").innerText(), /small_space/);
  await page.close();
});

test("32e: a second figure of a difference is made of the same columns", async () => {
  const page = await chromium.open(summed());
  await look(page, { tab: "changes", dump: 1, base: 0 });
  const measures = FOUR.map((measure, at) => ({ ...measure, at })).filter(({ view }) => /space/.test(view));
  assert.equal(measures.length, 2);
  for (const { at, name } of measures) {
    const [first, again] = await inApp(
      page,
      (app, at) => {
        const looked = [0, 1].map(() => {
          const columns = new Set();
          app.stage.figure(app.scene, at, (column) => (columns.add(column), column.sum));
          return columns;
        });
        return [looked[0].size, [...looked[1]].filter((column) => !looked[0].has(column)).length];
      },
      at,
    );
    assert.ok(first >= 5 && again === 0, `${name}: ${again} of ${first} columns were made again`);
  }
  await page.close();
});

const one = (more) => ({ stacks: [{ stack: ["main"], values: { objects: 1, space: 4096, alloc_objects: 1, alloc_space: 4096 } }], ...more });
const grew = async (dumps) => {
  const page = await chromium.open(encode({ dumps }));
  await page.waitForFunction(() => !document.body.innerText.includes("Comparing the dumps"));
  const text = await page.getByRole("region", { name: "Growth" }).innerText();
  await page.close();
  return text;
};

test("32c: the growth card gives the reason if it does not compare dumps", async () => {
  const apart = await grew([0, 1, 2, 3].map((series) => one({ series, pid: 100 + series, process: `app${series}` })));
  assert.match(apart, /The 4 dumps are of 4 different heaps or runs/);
  assert.match(apart, /app0, libc\.malloc has only one dump, and growth needs two/);
  const largest = await grew([0, 1, 2, 3].map(() => one({ kind: "at-maximum" })));
  assert.match(largest, /a heap at its maximum/);
  const mixed = await grew([one({ series: 0, stacks: [{ stack: ["main"], values: { objects: 9, space: 90_000, alloc_objects: 9, alloc_space: 90_000 } }] }), one({ series: 1, heap: "art" }), one({ series: 1, heap: "art" })]);
  assert.match(mixed, /(app\S*|process \d+|\S+), art has several dumps; select it under Heap/);
  const kinds = await grew([one({}), one({ kind: "at-maximum" })]);
  assert.match(kinds, /a heap at its maximum/, "dumps of one heap, one of them of another kind");
  const last = await grew([one({ kind: "at-maximum" }), one({})]);
  assert.match(last, /a heap at its maximum/);
  for (const text of [apart, largest, mixed, kinds, last]) assert.doesNotMatch(text, /One dump shows/);
  assert.match(await grew([one({})]), /One dump shows unreleased memory/);
  assert.match(await grew([one({}), one({})]), /Nothing grew/);
});

test("32d: a change and its interval are rounded to the same digit", async () => {
  const dumps = [1, 8].map((times) => ({ stacks: [{ stack: ["main"], values: { objects: 25 * times, space: 25 * times * 4096, alloc_objects: 25 * times, alloc_space: 25 * times * 4096 } }] }));
  const page = await chromium.open(encode({ dumps }));
  await look(page, { tab: "changes", dump: 1, base: 0 });
  const cells = await page.locator("#heaptap-panel tbody tr").first().locator("td, th").allInnerTexts();
  const ends = cells.find((text) => / to /.test(text));
  const [, digits, unit] = /to [+−]?\d+(\.\d+)? (\w+)/.exec(ends);
  const value = cells[cells.indexOf(ends) - 1];
  const shape = new RegExp(`^[+−]\\d+${digits ? `\\.\\d{${digits.length - 1}}` : ""} ${unit}$`);
  assert.match(value, shape, cells.join(" | "));
  await page.close();
});

test("32f: blocks of their true size do not hide a change among them", async () => {
  // Five bitmaps are replaced by four, and nothing else.
  const of = (held, made) => ({ stacks: [{ stack: ["decode"], values: { objects: held, space: held * 60_001, alloc_objects: made, alloc_space: made * 60_001 } }] });
  const page = await chromium.open(encode({ dumps: [of(5, 5), of(4, 9)] }));
  await look(page, { tab: "changes", dump: 1, base: 0 });
  const rows = await inApp(page, (app) => app.changes.rows.map(({ label, certain, range }) => [label, certain, range.hits < range.moved.came.hits]));
  assert.deepEqual(rows, [["decode", true, true]]);
  await page.close();
});
