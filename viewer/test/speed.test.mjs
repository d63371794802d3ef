// A million callsites: how long until they can be looked at, how long a frame takes, how much
// memory they need. The figures are printed; the limits have slack for busy machines, so that
// only a change of kind fails. `npm run speed` prints them without limits.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { browser, inApp, look } from "./browser.mjs";
import { page as makePage, synthetic } from "./encode.mjs";

/** How many times the goal is let pass: 2 s, 50 ms, 400 MB are for a machine that is free. */
const SLACK = Number(process.env.HEAPTAP_SLACK ?? 3);
const say = (text) => console.log(`# ${text}`);

let chromium;
let page;
before(async () => {
  chromium = await browser();
  const html = makePage(synthetic({ count: 1_000_000 }));
  say(`page of 1,000,000 callsites: ${(html.length / 1e6).toFixed(2)} MB`);
  page = await chromium.open(html);
});
after(() => chromium.close());

test("7: a million callsites are ready in 2 s", async () => {
  const ready = await inApp(page, (app) => app.readyAfter);
  say(`ready after ${Math.round(ready)} ms`);
  assert.ok(ready < 2000 * SLACK, `${ready} ms`);
});

test("8: a frame takes less than 50 ms", async () => {
  const frames = {};
  // The first frame grows boxes that did not exist; those after it, as a scroll or a change of
  // colors draws them, are the median of nine.
  const measure = async (what, patch) => {
    await look(page, patch);
    frames[what] = await inApp(page, (app) => app.flame.lastFrame);
    frames[`${what} again`] = await inApp(page, (app) => {
      const again = () => {
        app.show();
        return app.flame.lastFrame;
      };
      return Array.from({ length: 9 }, again).sort((a, b) => a - b)[4];
    });
  };
  await measure("all", { zoom: [] });
  const below = await inApp(page, (app) => app.pathHashes(app.scene.tree.children(app.scene.tree.children(app.scene.tree.root)[0])[0]));
  await measure("zoomed", { zoom: below });
  await measure("search", { zoom: [], search: "Class7" });
  const boxes = await inApp(page, (app) => app.flame.boxes);
  say(`frames of ${boxes} boxes: ${Object.entries(frames).map(([what, ms]) => `${what} ${ms.toFixed(1)} ms`).join(", ")}`);
  for (const [what, ms] of Object.entries(frames)) assert.ok(ms < 50 * SLACK, `${what}: ${ms} ms`);
});

test("8b: every step takes less than 2 s", async () => {
  for (const [what, patch] of [
    ["bottom-up", { search: "", view: "bottom-up" }],
    ["filter", { view: "top-down", filters: ["HF: /^ns1::/"] }],
    ["functions", { tab: "functions", filters: [] }],
  ]) {
    const start = Date.now();
    await look(page, patch);
    const took = Date.now() - start;
    say(`${what}: ${took} ms`);
    assert.ok(took < 2000 * SLACK, `${what}: ${took} ms`);
  }
});

test("9: the heap stays below 400 MB", async () => {
  await look(page, { tab: "flame", filters: [], view: "top-down" });
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const usage = await session.send("Runtime.getHeapUsage");
  const bytes = usage.usedSize + (usage.backingStorageSize ?? 0) + (usage.embedderHeapUsedSize ?? 0);
  say(`heap: ${(bytes / 1e6).toFixed(0)} MB (${(usage.usedSize / 1e6).toFixed(0)} of them objects)`);
  assert.ok(bytes < 400e6 * Math.min(SLACK, 1.5), `${bytes} bytes`);
});
