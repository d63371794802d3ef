// The address stores the state of the page: links restore it, and invalid addresses are harmless.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { browser, inApp, look, settled } from "./browser.mjs";
import { game } from "./samples.mjs";

let chromium;
before(async () => {
  chromium = await browser();
});
after(() => chromium.close());

const shown = (page) =>
  inApp(page, (app) => ({
    state: app.state,
    zoomed: app.zoomed && app.scene.keys.label(app.zoomed.key),
    total: app.scene.tree.root.after,
    weight: app.zoomed?.weight,
  }));

test("20: an address restores the state", async () => {
  const page = await chromium.open(game());
  const states = [
    { tab: "flame", view: "bottom-up", metric: "alloc_objects" },
    { tab: "tree", dump: 1, base: 0, width: "change" },
    { tab: "flame", base: null, view: "top-down", filters: ["SS: decode & more = #1", "HF: /^std::(a|b)/i"], search: "größe %41 &f=x" },
    { tab: "functions", filters: [], by: "line", allFrames: true, foldRecursion: true, foldChains: true, up: true },
    { tab: "java" },
    { tab: "flame", filters: ["P: decode"], view: "sandwich", by: "function" },
  ];
  for (const patch of states) {
    await look(page, patch);
    const hash = await page.evaluate(() => location.hash);
    const other = await chromium.openFile(page.file, { hash });
    assert.deepEqual(await shown(other), await shown(page), hash);
    await other.close();
  }
  // Zoom and selection are paths of names.
  await look(page, { filters: [], view: "top-down", search: "", allFrames: false, foldRecursion: false, foldChains: false, up: false });
  await inApp(page, (app) => {
    let cell = app.scene.tree.root;
    for (let i = 0; i < 3; i++) cell = app.scene.tree.children(cell)[0];
    app.zoom(cell);
  });
  await settled(page);
  const hash = await page.evaluate(() => location.hash);
  const other = await chromium.openFile(page.file, { hash });
  const [was, is] = [await shown(page), await shown(other)];
  assert.notEqual(was.zoomed, "all");
  assert.deepEqual(is, was);
  await other.close();
  await page.close();
});

test("21: an invalid address shows the first screen", async () => {
  const page = await chromium.open(game());
  const first = await shown(page);
  for (const hash of [
    "#",
    "#%",
    "#v=2&tab=info",
    "#v=1&tab=nothing&dump=99&base=-1&metric=__proto__&by=x&w=y&z=!!!&sel=zzzzzzzzzzzz&java=7",
    "#v=1&%E0%A4%A=1&f&=&&&==",
    `#v=1&q=${"a".repeat(30_000)}`,
    `#v=1&z=${"zz.".repeat(5000)}`,
    "#v=1&dump=1e3&base=0x1",
    "#v=1&z=1.2.3&sel=constructor",
    "#<script>alert(1)</script>",
  ]) {
    const other = await chromium.openFile(page.file, { hash });
    const got = await shown(other);
    assert.equal(got.total, first.total, hash);
    assert.equal(got.zoomed, "all", hash);
    assert.equal(got.state.dump, first.state.dump);
    assert.deepEqual(other.told.errors, [], hash);
    assert.deepEqual(other.told.console, [], hash);
    await other.close();
  }
  // Too many filters, and an invalid expression: the page still works.
  const many = await chromium.openFile(page.file, { hash: `#v=1&${"f=HF%3A%20x&".repeat(500)}f=SS%3A%20%2F(%2F` });
  assert.equal(await many.locator(".chip").count(), 24);
  await many.close();
  await page.close();
});

test("22: the back button goes back, forward goes forth", async () => {
  const page = await chromium.open(game());
  const first = await shown(page);
  await look(page, { tab: "functions" });
  await look(page, { metric: "objects" });
  const last = await shown(page);
  await page.goBack();
  await page.goBack();
  await settled(page);
  assert.deepEqual(await shown(page), first);
  assert.equal(await page.getAttribute("#heaptap-tab-flame", "aria-selected"), "true");
  await page.goForward();
  await page.goForward();
  await settled(page);
  assert.deepEqual(await shown(page), last);
  // An address typed by hand is a step too.
  await page.evaluate(() => (location.hash = "#v=1&tab=libraries"));
  await page.waitForFunction(() => document.querySelector("#heaptap-tab-libraries").getAttribute("aria-selected") === "true");
  await page.goBack();
  await page.waitForFunction(() => document.querySelector("#heaptap-tab-functions").getAttribute("aria-selected") === "true");
  await page.close();
});
