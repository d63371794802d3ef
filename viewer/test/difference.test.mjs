// Differences of two dumps: empty for equal dumps, complete for different ones, and marked if within
// sampling error.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { browser, inApp, look, wholeTree } from "./browser.mjs";
import { encode } from "./encode.mjs";
import { filtered, randomStacks, treeOf } from "./oracle.mjs";
import { game } from "./samples.mjs";

let chromium;
before(async () => {
  chromium = await browser();
});
after(() => chromium.close());

test("18: the difference of a dump and itself is empty", async () => {
  const stacks = randomStacks(3);
  const copy = () => stacks.map(({ stack, values }) => ({ stack, values }));
  const page = await chromium.open(encode({ dumps: [{ stacks: copy() }, { stacks: copy() }] }));
  await look(page, { dump: 1, base: 0, width: "change" });
  const tree = await wholeTree(page);
  assert.deepEqual(tree[3], [], "no box has a width");
  assert.equal(tree[1], tree[2]);
  await look(page, { width: "after", view: "top-down" });
  const changed = await inApp(page, (app) => {
    let changed = 0;
    const walk = (cell) => {
      if (cell.after !== cell.before) changed += 1;
      app.scene.tree.children(cell).forEach(walk);
    };
    walk(app.scene.tree.root);
    return changed;
  });
  assert.equal(changed, 0);
  await look(page, { tab: "changes" });
  assert.match(await page.locator(".segments button").filter({ hasText: "All" }).textContent(), /\(0\)/);
  await page.close();
});

test("the tab of differences compares with the first dump by itself", async () => {
  const dumps = [1, 2, 3].map((seed) => ({ stacks: randomStacks(seed) }));
  const page = await chromium.open(encode({ dumps }));
  const pair = () => inApp(page, ({ state: { dump, base } }) => [dump, base]);
  const open = async (dump, base = null) => {
    await look(page, { tab: "flame", dump, base });
    await page.getByRole("tab", { name: "Difference" }).click();
    await page.waitForFunction(() => document.querySelector("[data-tab=changes]"));
    return pair();
  };
  assert.deepEqual(await open(2), [2, 0]);
  assert.deepEqual(await open(1), [1, 0]);
  assert.deepEqual(await open(0), [2, 0], "the first with the last");
  assert.deepEqual(await open(2, 1), [2, 1], "a choice stays");
  await look(page, { tab: "flame", dump: 2, base: null });
  await page.locator("body").press(String((await inApp(page, (app) => app.tabs.indexOf("changes"))) + 1));
  assert.deepEqual(await pair(), [2, 0], "by its digit, too");
  assert.ok((await inApp(page, (app) => app.changes.rows.length)) > 0);
  await page.close();
});

test("the table of differences fits a page of 1280 px, whatever the names", async () => {
  const stack = (name, objects, allocated) => ({
    stack: [{ name: name.padEnd(200, "x"), lib: "libandroid_runtime.so" }],
    values: { objects, space: objects * 4096, alloc_objects: allocated, alloc_space: allocated * 4096 },
  });
  const dump = (grown, chance, allocated) => ({ stacks: [stack("example::EventHistory::Append(", grown, grown), stack("example::Listener::Create(", chance, allocated)] });
  const page = await chromium.open(encode({ dumps: [dump(1_230, 203, 300), dump(12_432, 213, 900)] }));
  await look(page, { tab: "changes", dump: 1, base: 0 });
  const over = await page.locator(".panel .table-scroll").evaluate((each) => each.scrollWidth - each.clientWidth);
  assert.equal(over, 0);
  assert.ok((await page.locator(".panel td .tag.noise").count()) > 0, "the longest kind is shown");
  await page.close();
});

test("19: new and gone functions are listed, with exact values of both sides", async () => {
  const all = randomStacks(5, 210);
  const only = (name) => ({ stack: [{ name, lib: "" }], values: { objects: 9, space: 36864, alloc_objects: 9, alloc_space: 36864 } });
  const before = [...all.slice(0, 150), only("was here")];
  const after = [...all.slice(40), only("is here")];
  const page = await chromium.open(encode({ dumps: [{ stacks: before }, { stacks: after }] }));
  await look(page, { tab: "changes", dump: 1, base: 0 });
  const self = (stacks) => {
    const sums = new Map();
    for (const { stack, values } of stacks) {
      const path = filtered(stack, []);
      const leaf = stack.filter((frame) => !["allocator", "runtime"].includes(frame.kind)).at(-1);
      if (path.length > 0) sums.set(`${leaf.name} ${leaf.lib}`, (sums.get(`${leaf.name} ${leaf.lib}`) ?? 0) + values.space);
    }
    return sums;
  };
  const [then, now] = [self(before), self(after)];
  const expected = { new: [], gone: [], grew: [], shrank: [] };
  for (const name of new Set([...then.keys(), ...now.keys()])) {
    const [was, is] = [then.get(name) ?? 0, now.get(name) ?? 0];
    if (was === is) continue;
    const kind = was === 0 ? "new" : is === 0 ? "gone" : is > was ? "grew" : "shrank";
    expected[kind].push(`${name} ${was} ${is}`);
  }
  const rows = await inApp(page, (app) => app.changes.rows.map((row) => ({ ...row, range: null })));
  for (const kind of Object.keys(expected)) {
    const got = rows.filter((row) => row.kind === kind).map((row) => `${row.label} ${row.library === "(no library)" ? "" : row.library} ${row.before} ${row.after}`);
    const wanted = expected[kind].map((text) => text.replace(/\/\S*\//, ""));
    assert.deepEqual(got.sort(), wanted.sort(), kind);
  }
  assert.ok(expected.new.length > 0 && expected.gone.length > 0 && expected.grew.length > 0);
  // The tree holds both sides of every stack.
  await look(page, { tab: "flame", width: "after" });
  const paths = [
    ...after.map(({ stack, values }) => [filtered(stack, []), values.space, 0]),
    ...before.map(({ stack, values }) => [filtered(stack, []), 0, values.space]),
  ];
  assert.deepEqual(await wholeTree(page), treeOf(paths));
  await page.close();
});

test("growth: the rows are of the two dumps of the headline, with the verdicts over all iterations", async () => {
  const page = await chromium.open(game());
  const card = page.locator('.cards section[aria-label="Growth"]');
  await card.locator(".tag").first().waitFor();
  assert.match(await card.locator(".headline").textContent(), /^\+1\.3 MiB before → level 3$/);
  const rows = await card.locator(".ranked button").evaluateAll((all) => all.map((row) => [...row.children].map((part) => part.textContent)));
  assert.deepEqual(rows, [
    ["Level::load(std::string const&)", "+480.0 KiB", "confirmed"],
    ["SkBitmap::allocPixels()", "+800.0 KiB", "grew"],
    ["operator()(byte[], int)", "+40.0 KiB", "inconclusive"],
  ]);
  assert.match(await card.locator(".hint").textContent(), /^confirmed: .* grew: .* inconclusive: /);
  await page.close();
});

test("growth: a place without a name has the verdict of the function that it represents", async () => {
  const site = { function: "Java_com_example_load", library: "libgame.so", allocators: ["SkBitmap::allocPixels()"], verdict: "confirmed", says: "It grows." };
  const per_round = { value: 1, low: 1, high: 1 };
  const page = await chromium.open(game({ growth: [{ series: 0, per: "iteration", rounds: 2, sites: [{ ...site, per_round }] }] }));
  const rows = page.locator('.cards section[aria-label="Growth"] .ranked button');
  await rows.first().waitFor();
  assert.match(await rows.first().textContent(), /^SkBitmap::allocPixels\(\).*confirmed$/);
  await page.close();
});

test("19b: growth within sampling error is marked, and is gray", async () => {
  const page = await chromium.open(game());
  await look(page, { tab: "changes", dump: 2, base: 0 });
  const tags = Object.fromEntries(
    await page.locator(".table-scroll tbody tr").evaluateAll((rows) =>
      rows.map((row) => [row.cells[0].textContent, row.cells[1].textContent]),
    ),
  );
  assert.equal(tags["SkBitmap::allocPixels()"], "grew");
  assert.equal(tags["operator()(byte[], int)"], "within sampling error");
  assert.equal(await page.locator(".pane p.hint", { hasText: /grew: .* within sampling error: can be chance/ }).count(), 1);
  await page.getByRole("button", { name: /^Grew \(/ }).click();
  const grown = await inApp(page, (app) => app.changes.table.rows.map((row) => [row.kind, row.certain]));
  assert.ok(grown.length > 0 && grown.every(([kind, certain]) => kind === "grew" && certain), JSON.stringify(grown));
  assert.match(await page.locator(".pane details").textContent(), /Confirmed leaks: 1 of 2 callsites, over 2 iterations.*confirmed.*Level::load.*inconclusive.*8 iterations would decide/s);
  // The same figures by hand: notes on sampling, differences of one recording.
  const ranges = await inApp(page, (app) => Object.fromEntries(app.changes.rows.map((row) => [row.label, row.range])));
  const z = 1.959963984540054;
  const low = (k) => (k < 1 ? 0 : k * (1 - 1 / (9 * k) - z / (3 * Math.sqrt(k))) ** 3);
  const high = (k) => (k + 1) * (1 - 1 / (9 * (k + 1)) + z / (3 * Math.sqrt(k + 1))) ** 3;
  // allocPixels from loop: unreleased 300 -> 500 hits, allocated 600 -> 1200; from Java 80 -> 80, 90 -> 92.
  const p = Math.min(1200 - 600, 500) + Math.min(2, 80);
  const q = Math.min(700 - 300, 300) + Math.min(2, 80);
  const expected = {
    low: 200 * 4096 - 4096 * Math.hypot(p - low(p), high(q) - q),
    high: 200 * 4096 + 4096 * Math.hypot(high(p) - p, q - low(q)),
  };
  const got = ranges["SkBitmap::allocPixels()"];
  assert.ok(Math.abs(got.low - expected.low) < 1 && Math.abs(got.high - expected.high) < 1, JSON.stringify([got, expected]));
  await page.close();
});

test("changes are totals, and those per iteration say so", async () => {
  const diff = { before: "before", after: "level 3", pairs: [{ before: 0, after: 2 }], same_recording: true, per: { times: 10, word: "iteration" } };
  const page = await chromium.open(game({ diff }));
  const texts = () => page.locator(".details").textContent();
  assert.match(await texts(), /Change: \+1\.29 MiB/);
  assert.match(await page.locator(".details tr.now").textContent(), /\+1\.3 MiB$/);
  assert.match(await page.locator('.cards section[aria-label="Growth"] .headline').textContent(), /^\+1\.3 MiB/);
  await look(page, { tab: "changes" });
  assert.match(await page.locator(".pane").textContent(), /In total: \+13\d KiB.* per iteration\./);
  const row = page.locator(".table-scroll tr", { hasText: "SkBitmap::allocPixels()" });
  assert.match(await row.textContent(), /\+80 KiB/);
  const titles = await page.locator(".table-scroll th").allTextContents();
  assert.ok(titles.some((title) => /^Change per iteration/.test(title)), titles.join());
  await page.close();
});
