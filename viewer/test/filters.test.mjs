// Search, filters and shapes of the graph against oracles that look at one stack after another.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { browser, inApp, look, settled, wholeTree } from "./browser.mjs";
import { encode } from "./encode.mjs";
import { filtered, nameOf, randomStacks, treeOf } from "./oracle.mjs";

let chromium;
let page;
const stacks = randomStacks(7);
const whole = stacks.reduce((sum, { values }) => sum + values.space, 0);
before(async () => {
  chromium = await browser();
  page = await chromium.open(encode({ dumps: [{ stacks }] }));
});
after(() => chromium.close());

/** Forgets all filters, views and folds. */
const FRESH = {
  tab: "flame",
  view: "top-down",
  metric: "",
  filters: [],
  by: "function",
  allFrames: false,
  foldRecursion: false,
  foldChains: false,
  zoom: [],
  selected: [],
  search: "",
};

const spelled = (filters) => filters.map(({ kind, pattern }) => `${kind}: ${pattern}`);

function oracle(filters, options = {}, measure = "space") {
  const paths = [];
  for (const { stack, values } of stacks) {
    const path = filtered(stack, filters, options);
    if (path) paths.push([path, values[measure]]);
  }
  return paths;
}

test("11: a search counts every matched stack once", async () => {
  const hidden = (frame) => ["allocator", "runtime"].includes(frame.kind);
  for (const [search, matches] of [
    ["decode", (frame) => frame.name.includes("decode")],
    ["DECODE1", (frame) => frame.name.toLowerCase().includes("decode1")],
    ["byte[]", (frame) => frame.name.includes("byte[]")],
    ["operator()", (frame) => frame.name.includes("operator()")],
    ["/^ns::f/", (frame) => /^ns::f/.test(frame.name)],
    ["/DECODE/i", (frame) => /DECODE/i.test(frame.name)],
    ["lib:game", (frame) => frame.lib.includes("game")],
    ["nothing has this", () => false],
  ]) {
    await look(page, { ...FRESH, search });
    const sum = stacks
      .filter(({ stack }) => stack.some((frame) => !hidden(frame) && matches(frame)))
      .reduce((total, { values }) => total + values.space, 0);
    const names = new Set(stacks.flatMap(({ stack }) => stack).map((frame) => `${frame.name} ${frame.lib} ${frame.kind}`));
    const found = page.locator(".found");
    assert.equal(Number(await found.getAttribute("data-value")), sum, search);
    if (sum > 0) assert.match(await found.textContent(), /%/);
    else assert.equal(await found.textContent(), "no matches");
    assert.ok(names.size > 0);
  }
  assert.ok(whole > 0);
});

test("12: an invalid expression gives a reason, and is ignored", async () => {
  await look(page, { ...FRESH, search: "/(/" });
  assert.match(await page.locator(".found").textContent(), /invalid regular expression/);
  assert.equal(await page.getAttribute(".searching input", "aria-invalid"), "true");
  await page.fill(".filter", "HF: /[/");
  await page.press(".filter", "Enter");
  assert.match(await page.locator(".fault").textContent(), /invalid regular expression/);
  assert.deepEqual((await inApp(page, (app) => app.state)).filters, []);
  // In a link, it is shown as a filter without effect.
  await look(page, { ...FRESH, filters: ["SS: /(/"] });
  assert.equal(await page.locator(".chip.bad").count(), 1);
  assert.equal((await wholeTree(page))[1], whole);
  // One that would take forever is ended, and the page lives on.
  const slow = encode({ dumps: [{ stacks: [{ stack: [`${"a".repeat(60)}!`], values: { objects: 1, space: 4096 } }] }] });
  const other = await chromium.open(slow);
  await look(other, { filters: ["SS: /^(a+)+$/"] });
  assert.match(await other.locator(".fault").textContent(), /took longer/);
  assert.equal((await wholeTree(other))[1], 4096);
  await other.close();
});

test("13: each filter works, alone and combined", async () => {
  const cases = [
    [{ kind: "SS", pattern: "decode" }],
    [{ kind: "HS", pattern: "decode" }],
    [{ kind: "SFF", pattern: "/^ns::f/" }],
    [{ kind: "HF", pattern: "operator()" }],
    [{ kind: "HF", pattern: "lib:liba" }],
    [{ kind: "CF", pattern: "Map<" }],
    [{ kind: "SS", pattern: "lib:/game\\.so$/" }],
    [{ kind: "SS", pattern: "/DECODE5/i" }, { kind: "HS", pattern: "a.b.C" }],
    [{ kind: "SFF", pattern: "decode" }, { kind: "HF", pattern: "Map" }, { kind: "HS", pattern: "byte[]" }],
    [{ kind: "HF", pattern: "/./" }],
    [{ kind: "HS", pattern: "malloc" }],
    [{ kind: "SS", pattern: "malloc" }],
    [{ kind: "SS", pattern: "decode" }, { kind: "SS", pattern: "Map" }],
  ];
  for (const filters of cases) {
    for (const allFrames of [false, true]) {
      await look(page, { ...FRESH, filters: spelled(filters), allFrames });
      assert.deepEqual(await wholeTree(page), treeOf(oracle(filters, { allFrames })), `${spelled(filters)} ${allFrames}`);
    }
  }
  // Perfetto's and pprof's words for the same, and bare text.
  for (const [text, filter] of [
    ["Show Stack: decode", { kind: "SS", pattern: "decode" }],
    ["ignore: decode", { kind: "HS", pattern: "decode" }],
    ["show_from: decode", { kind: "SFF", pattern: "decode" }],
    ["hide: decode", { kind: "HF", pattern: "decode" }],
    ["ns::f", { kind: "SS", pattern: "ns::f" }],
  ]) {
    await look(page, FRESH);
    await page.fill(".filter", text);
    await page.press(".filter", "Enter");
    await settled(page);
    assert.deepEqual(await wholeTree(page), treeOf(oracle([filter])), text);
  }
});

test("13b: measures are columns of their own", async () => {
  for (const metric of ["objects", "space", "alloc_objects", "alloc_space"]) {
    await look(page, { ...FRESH, metric });
    assert.deepEqual(await wholeTree(page), treeOf(oracle([], {}, metric)), metric);
  }
});

test("14: undo and redo go over every step", async () => {
  const page = await chromium.open(encode({ dumps: [{ stacks }] }));
  const steps = [{ filters: ["SS: decode"] }, { view: "bottom-up" }, { metric: "objects" }, { foldRecursion: true }];
  const seen = [await inApp(page, (app) => app.state)];
  for (const step of steps) {
    await look(page, step);
    seen.push(await inApp(page, (app) => app.state));
  }
  const press = async (key) => {
    const before = await page.evaluate(() => location.hash);
    await page.keyboard.press(key);
    await page.waitForFunction((before) => location.hash !== before, before);
    await settled(page);
  };
  await page.locator(".flame-scroll").focus();
  for (let at = steps.length - 1; at >= 0; at--) {
    await press("u");
    assert.deepEqual(await inApp(page, (app) => app.state), seen[at]);
  }
  assert.equal(await page.locator("[aria-label=Undo]").isDisabled(), true);
  for (let at = 1; at <= steps.length; at++) {
    await press("U");
    assert.deepEqual(await inApp(page, (app) => app.state), seen[at]);
  }
  assert.equal(await page.locator("[aria-label=Redo]").isDisabled(), true);
  await page.close();
});

test("15: a pivot shows callers and callees that sum up", async () => {
  const filters = [{ kind: "P", pattern: "decode5" }];
  await look(page, { ...FRESH, filters: spelled(filters), view: "sandwich" });
  const hits = stacks.filter(({ stack }) => stack.some((frame) => frame.name.includes("decode5")));
  const sum = hits.reduce((total, { values }) => total + values.space, 0);
  const shown = (frame) => !["allocator", "runtime"].includes(frame.kind);
  const down = [];
  const up = [];
  for (const { stack, values } of hits) {
    const at = stack.findIndex((frame) => frame.name.includes("decode5"));
    down.push([[stack[at], ...stack.slice(at + 1).filter(shown)].map(nameOf), values.space]);
    up.push([[stack[at], ...stack.slice(0, at).filter(shown).reverse()].map(nameOf), values.space]);
  }
  const callees = await wholeTree(page, "tree");
  assert.equal(callees[1], sum);
  assert.deepEqual(callees, treeOf(down));
  assert.deepEqual(await wholeTree(page, "callers"), treeOf(up));
});

test("16: bottom-up has the same sums, by allocating function", async () => {
  for (const filters of [[], [{ kind: "HS", pattern: "decode" }], [{ kind: "HF", pattern: "Map" }]]) {
    await look(page, { ...FRESH, filters: spelled(filters), view: "bottom-up" });
    const paths = oracle(filters).map(([path, value]) => [path.slice().reverse(), value]);
    const tree = await wholeTree(page);
    assert.deepEqual(tree, treeOf(paths));
    const bare = paths.filter(([path]) => path.length === 0).reduce((sum, [, value]) => sum + value, 0);
    assert.equal(tree[3].reduce((sum, child) => sum + child[1], 0) + bare, tree[1]);
  }
});

test("17: folding recursion and chains keeps every total", async () => {
  await look(page, { ...FRESH, foldRecursion: true });
  const folded = await wholeTree(page);
  assert.equal(folded[1], whole);
  assert.deepEqual(folded, treeOf(oracle([], { foldRecursion: true })));
  await look(page, { ...FRESH, foldRecursion: true, view: "bottom-up" });
  assert.deepEqual(await wholeTree(page), treeOf(oracle([], { foldRecursion: true }).map(([path, value]) => [path.slice().reverse(), value])));

  const unchained = ([label, after, before, children]) => {
    const labels = label.split(" > ");
    const last = [labels[labels.length - 1], after, before, children.map(unchained)];
    return labels.slice(0, -1).reduceRight((inner, name) => [name, after, before, [inner]], last);
  };
  await look(page, { ...FRESH, foldChains: true });
  const tree = await wholeTree(page);
  assert.ok(JSON.stringify(tree).includes(" > "), "some chain is folded");
  assert.deepEqual(unchained(tree), treeOf(oracle([])));
});
