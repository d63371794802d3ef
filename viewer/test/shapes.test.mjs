// Heaps of odd shapes.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { browser, inApp, look, wholeTree } from "./browser.mjs";
import { encode } from "./encode.mjs";
import { javaHeap } from "./samples.mjs";

let chromium;
before(async () => {
  chromium = await browser();
});
after(() => chromium.close());

const values = (count) => ({ objects: count, space: count * 4096, alloc_objects: count, alloc_space: count * 4096 });

async function everywhere(page) {
  for (const tab of await inApp(page, (app) => app.tabs)) await look(page, { tab });
  await look(page, { tab: (await inApp(page, (app) => app.tabs))[0] });
  assert.deepEqual(page.told.errors, []);
  assert.deepEqual(page.told.console, []);
}

test("30: empty, and a single box", async () => {
  const empty = await chromium.open(encode({ dumps: [{ stacks: [] }] }));
  await everywhere(empty);
  assert.deepEqual(await wholeTree(empty), ["all", 0, 0, []]);
  await empty.close();

  const one = await chromium.open(encode({ dumps: [{ stacks: [{ stack: ["only"], values: values(1) }] }] }));
  await everywhere(one);
  assert.deepEqual(await wholeTree(one), ["all", 4096, 0, [["only", 4096, 0, []]]]);
  await one.close();

  const hidden = await chromium.open(
    encode({ dumps: [{ stacks: [{ stack: [{ name: "malloc", kind: "allocator" }], values: values(1) }] }] }),
  );
  await everywhere(hidden);
  assert.deepEqual(await wholeTree(hidden), ["all", 4096, 0, []]);
  await hidden.close();

  const java = await chromium.open(encode({ java: [javaHeap()] }));
  await everywhere(java);
  assert.deepEqual(await inApp(java, (app) => app.tabs), ["java", "info"]);
  await java.close();
});

test("30a: stacks 5,000 deep", async () => {
  const deep = Array.from({ length: 5000 }, (_, i) => `level${i % 977}`);
  const page = await chromium.open(encode({ dumps: [{ stacks: [{ stack: deep, values: values(3) }, { stack: deep.slice(0, 10), values: values(1) }] }] }));
  await everywhere(page);
  assert.equal(await inApp(page, (app) => app.flame.boxes), 5001);
  await look(page, { view: "bottom-up" });
  assert.equal(await inApp(page, (app) => app.scene.tree.root.after), 4 * 4096);
  await look(page, { tab: "tree", view: "top-down" });
  await page.getByRole("button", { name: "Unfold the largest" }).click();
  assert.equal(await page.getAttribute("[role=treegrid]", "aria-rowcount"), "5002");
  await look(page, { tab: "flame" });
  await inApp(page, (app) => {
    let cell = app.scene.tree.root;
    while (app.scene.tree.children(cell)[0]) cell = app.scene.tree.children(cell)[0];
    app.zoom(cell);
  });
  await look(page, {});
  assert.ok((await page.evaluate(() => location.hash.length)) < 5000, "the address stays bearable");
  assert.deepEqual(page.told.errors, []);
  await page.close();
});

test("30b: two device pixels a pixel", async () => {
  const sharp = await browser({ deviceScaleFactor: 2 });
  const page = await sharp.open(encode({ dumps: [{ stacks: [{ stack: ["a", "b"], values: values(2) }] }] }));
  const [real, css] = await page.locator(".flame canvas").evaluate((canvas) => [canvas.width, canvas.clientWidth]);
  assert.equal(real, css * 2);
  const at = await inApp(page, (app) => app.flame.positionOf(app.scene.tree.children(app.scene.tree.root)[0]));
  await page.mouse.move(at.x, at.y);
  assert.match(await page.locator(".tip").textContent(), /^a/);
  await sharp.close();
});

test("30d: blocks that end anywhere, dumps as differences, measures that follow from others", async () => {
  const stacks = [1, 2, 3].map((i) => ({ stack: ["f", `g${i}`], values: values(i) }));
  const report = encode({ dumps: [{ stacks }, { stacks: stacks.slice(1).map(({ stack }) => ({ stack, values: values(2) })), base: 0 }] });
  const page = await chromium.open(report, { block: 61 });
  assert.deepEqual(await inApp(page, (app) => app.profile.dumps.map((dump) => dump.columns.map((column) => [...column]))), [
    [[1, 2, 3], [4096, 8192, 12288], [1, 2, 3], [4096, 8192, 12288]],
    [[1, 4, 5], [4096, 16384, 20480], [1, 4, 5], [4096, 16384, 20480]],
  ]);
  await page.close();

  const from = [
    { name: "objects", unit: "count", view: "objects" },
    { name: "space", unit: "bytes", view: "space", from: { measure: 0, times: 4096 } },
  ];
  const other = await chromium.open(
    encode({ header: { measures: from }, dumps: [{ stacks: [{ stack: ["f"], values: { objects: 2, space: 5 } }] }] }),
  );
  assert.deepEqual(await inApp(other, (app) => app.profile.dumps[0].columns.map((column) => [...column])), [[2], [8197]]);
  await other.close();
});

test("30e: values of another tool, negative ones among them", async () => {
  const measures = [{ name: "delay", unit: "nanoseconds", view: null }];
  const page = await chromium.open(
    encode({
      header: { measures },
      dumps: [{ interval: 0, stacks: [{ stack: ["a"], values: { delay: 10 } }, { stack: ["b"], values: { delay: -4 } }] }],
    }),
  );
  await everywhere(page);
  assert.deepEqual(await inApp(page, (app) => [app.scene.tree.root.after, app.scene.tree.root.weight]), [6, 10]);
  await page.close();
});
