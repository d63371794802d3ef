// Tables: sorting, filtering, any length, and copied content.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { browser, inApp, look } from "./browser.mjs";
import { encode, synthetic } from "./encode.mjs";
import { shown as explored } from "./explorer.mjs";
import { filtered, nameOf, randomStacks } from "./oracle.mjs";
import { comparedHeap, game, javaHeap } from "./samples.mjs";

let chromium;
before(async () => {
  chromium = await browser({ permissions: ["clipboard-read", "clipboard-write"] });
});
after(() => chromium.close());

const cells = (page, column) =>
  page.locator(".table-scroll tbody tr[data-row]").evaluateAll((rows, column) => rows.map((row) => row.cells[column].textContent), column);

test("23: tables sort by every column and filter by name", async () => {
  const stacks = randomStacks(11);
  const page = await chromium.open(encode({ dumps: [{ stacks }] }));
  await look(page, { tab: "functions" });
  const visible = (frame) => !["allocator", "runtime"].includes(frame.kind);
  const rows = new Map();
  for (const { stack, values } of stacks) {
    const shown = stack.filter(visible);
    const row = (frame) => {
      const key = `${frame.name} ${frame.lib}`;
      if (!rows.has(key)) rows.set(key, { name: frame.name, self: 0, total: 0 });
      return rows.get(key);
    };
    new Set(shown).forEach((frame) => (row(frame).total += values.space));
    if (shown.length > 0) row(shown.at(-1)).self += values.space;
  }
  const expected = [...rows.values()].filter(({ self, total }) => self || total);
  const got = await inApp(page, (app) => app.functions.listed.map(({ label, self, total }) => ({ name: label, self, total })));
  const by = (a, b) => (a.name < b.name ? -1 : 1);
  assert.deepEqual(got.slice().sort(by), expected.slice().sort(by));
  assert.deepEqual(got.map(({ self }) => self), expected.map(({ self }) => self).sort((a, b) => b - a), "by self at first");

  const heading = (text) => page.locator("thead button", { hasText: text });
  await heading("Total").click();
  assert.deepEqual(
    await inApp(page, (app) => app.functions.listed.map(({ total }) => total)),
    expected.map(({ total }) => total).sort((a, b) => b - a),
  );
  await heading("Function").click();
  const names = await inApp(page, (app) => app.functions.listed.map(({ label }) => label));
  assert.deepEqual(names, names.slice().sort());
  assert.equal(await page.locator("th[aria-sort=ascending]").count(), 1);
  await heading("Function").click();
  assert.deepEqual(await inApp(page, (app) => app.functions.listed.map(({ label }) => label)), names.slice().reverse());

  await page.fill(".pane input[type=search]", "DECODE");
  const left = await cells(page, 0);
  assert.ok(left.length > 0 && left.every((name) => name.includes("decode")));
  assert.match(await page.locator(".pane .hint").first().textContent(), new RegExp(`^${left.length} of ${expected.length} rows$`));
  await page.close();
});

test("24: 100,000 rows scroll, and only those in sight exist", async () => {
  const page = await chromium.open(synthetic({ count: 400_000, functions: 180_000, seed: 5 }));
  await look(page, { tab: "functions" });
  const count = await inApp(page, (app) => app.functions.listed.length);
  assert.ok(count >= 100_000, `${count} rows`);
  const scroller = page.locator(".table-scroll");
  const present = async () => page.locator(".table-scroll tbody tr[data-row]").count();
  assert.ok((await present()) < 100);
  await scroller.evaluate((element) => (element.scrollTop = element.scrollHeight / 2));
  await page.waitForFunction(() => Number(document.querySelector("tr[data-row]")?.dataset.row) > 10_000);
  assert.ok((await present()) < 100);
  await page.locator(".table-scroll table").focus();
  await page.keyboard.press("End");
  // Rows are drawn anew in later frames, so one that was found can be gone a moment later.
  const lastIsInSight = (last) => {
    const bottom = (selector) => document.querySelector(selector)?.getBoundingClientRect().bottom;
    return bottom(`tr[data-row="${last}"]`) <= bottom(".table-scroll") + 1;
  };
  await page.waitForFunction(lastIsInSight, count - 1);
  await page.close();
});

test("25: copied and saved content is exact to the byte", async () => {
  const stacks = [
    ...randomStacks(13, 80),
    { stack: ["a;b", "line\nbreak", "=SUM(A1)"], values: { objects: 3, space: 12288, alloc_objects: 3, alloc_space: 12288 } },
  ];
  const page = await chromium.open(encode({ dumps: [{ stacks }] }));
  const sums = new Map();
  for (const { stack, values } of stacks) {
    if (values.space === 0) continue;
    const path = filtered(stack, [{ kind: "HF", pattern: "Map" }]).map((name) => name.replace(/;/g, ":").replace(/\n/g, " "));
    const line = path.length > 0 ? path.join(";") : "(hidden)";
    sums.set(line, (sums.get(line) ?? 0) + values.space);
  }
  const expected = [...sums].map(([line, value]) => `${line} ${value}`).sort();
  await look(page, { filters: ["HF: Map"] });
  await page.locator(".menu summary").click();
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save shown callstacks" }).click();
  const text = readFileSync(await (await saved).path(), "utf8");
  assert.equal(text, expected.map((line) => `${line}\n`).join(""));

  const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
  await look(page, { filters: ["SS: a;b"] });
  await inApp(page, (app) => {
    let cell = app.scene.tree.root;
    while (app.scene.tree.children(cell)[0]) cell = app.scene.tree.children(cell)[0];
    app.select(cell);
  });
  await look(page, {});
  await page.getByRole("button", { name: "Copy callstack as folded text" }).click();
  await page.waitForFunction(() => document.querySelector(".toast").textContent === "Callstack copied");
  assert.equal(await clipboard(), "a:b;line break;=SUM(A1) 12288\n");
  await page.getByRole("button", { name: "Copy callstack as a Markdown table" }).click();
  assert.equal((await clipboard()).split("\n")[3], "| line break | (no library) |  | 12,288 B |");
  await page.getByRole("button", { name: "Copy callstack as tab-separated values" }).click();
  assert.equal((await clipboard()).split("\n")[3], "'=SUM(A1)\t(no library)\t\t12288");

  await look(page, { tab: "functions", filters: [] });
  await page.getByRole("button", { name: "Copy as TSV" }).click();
  await page.waitForFunction(() => /rows copied/.test(document.querySelector(".toast").textContent));
  const lines = (await clipboard()).trimEnd().split("\n");
  assert.equal(lines[0], "name\tlibrary\tself\ttotal");
  assert.equal(lines.length - 1, await inApp(page, (app) => app.functions.listed.length));
  const self = lines.slice(1).reduce((sum, line) => sum + Number(line.split("\t")[2]), 0);
  const shown = stacks.reduce((sum, { stack, values }) => sum + (filtered(stack, []).map(nameOf).length > 0 ? values.space : 0), 0);
  assert.equal(self, shown);
  await page.close();
});

test("25b: a Java heap is explored with the answers of the page; other tabs keep their state", async () => {
  const page = await chromium.open(game());
  await look(page, { search: "load" });
  await page.getByRole("tab", { name: "Java heap" }).click();
  await explored(page, "Largest classes");
  const views = page.locator(".explorer nav.tabs a");
  assert.deepEqual(await views.allTextContents(), ["Overview", "Leaks", "Classes", "Objects", "Dominators", "Flame graph", "Bitmaps", "Waste"]);
  await views.getByText("Classes").click();
  const names = () => page.locator(".explored .grid tbody tr:not([aria-hidden]) td:first-child").allTextContents();
  await explored(page, "byte[]");
  assert.deepEqual(await names(), ["com.example.app.MainActivity", "android.graphics.Bitmap", "byte[]", "java.lang.String"]);
  await page.keyboard.press("/");
  await page.keyboard.type("activity");
  await page.waitForURL(/filter=activity/);
  await explored(page, "1 row");
  assert.deepEqual(await names(), ["com.example.app.MainActivity"]);
  await page.locator(".explored .grid tbody a").first().click();
  await explored(page, "Merged paths");
  await page.getByText("Merged paths").click();
  await explored(page, "mContext");
  assert.match(await page.locator(".holders").textContent(), /java\.lang\.String\.mContext.*app\.Keeper\.LIST 1 object GC root: sticky class/s);
  assert.match(await page.locator(".holders").textContent(), /2 references; .* 3 more references are not shown/);
  await page.getByRole("link", { name: "com.example.app.MainActivity" }).first().click();
  await explored(page, "mDestroyed is true");
  await page.getByRole("tab", { name: "Flame graph" }).click();
  assert.equal(await inApp(page, (app) => app.state.search), "load");
  await page.goBack();
  await explored(page, "mDestroyed is true");
  await page.getByRole("button", { name: /^Leaked: com/ }).click();
  await explored(page, "Clear the reference in onDestroy");
  assert.equal(await page.locator(".leaks .suspect").textContent(), "String.mContext");
  assert.match(await page.locator(".leaks .path").textContent(), /sInstance… 2 steps …java\.lang\.String/);
  assert.deepEqual(page.told.errors, []);
  await page.close();
});

test("25c: with two Java heaps, the page opens on what grew", async () => {
  const page = await chromium.open(encode({ java: [javaHeap(), comparedHeap()] }));
  await explored(page, "What grew");
  assert.match(await page.locator(".grown").textContent(), /since before\.hprof.*new destroyed Activity: com\.example\.app\.MainActivity0 → 20 B → 8\.6 MiB.*app\.Event100 → 180\+80\.0 KiB/s);
  // A class without a list in the file does not have a link.
  assert.equal(await page.locator(".grown").getByRole("link", { name: "app.Event" }).count(), 0);
  await page.getByRole("link", { name: "destroyed Activity: com.example.app.MainActivity" }).first().click();
  await explored(page, "Clear the reference in onDestroy");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "confirmed destroyed Activity: com.example.app.MainActivity");
  await page.getByRole("link", { name: "Compare" }).click();
  await explored(page, "Classes that changed");
  const cells = (column) => page.locator(".explored .grid tbody tr:not([aria-hidden])").evaluateAll((rows, column) => rows.map((row) => row.cells[column].textContent), column);
  assert.equal(await inApp(page, (app) => app.state.java), 1, "not the one before");
  assert.match(await page.locator(".explored").textContent(), /\+512\.0 KiB in \+80 objects since before\.hprof/);
  assert.deepEqual(await cells(0), ["app.Event grown", "byte[] new", "app.Cache shrunk"]);
  assert.deepEqual(await cells(4), ["+585.9 KiB", "–", "–"]);
  assert.match(await page.locator(".wide[aria-label=Leaks]").textContent(), /new destroyed Activity: com\.example\.app\.MainActivity0 → 2/);
  assert.match(await page.locator(".wide[aria-label='Dominator tree']").textContent(), /class app\.Keeper grown.*app\.Event grown\+80\+80\.0 KiB/s);
  await page.locator(".explored .grid thead").getByRole("link", { name: "Objects" }).click();
  await page.waitForURL(/compare.*sort=count/);
  await explored(page, "Classes that changed");
  assert.deepEqual(await cells(2), ["+80", "+7", "−5"]);
  await page.getByRole("combobox", { name: "Heap dump" }).selectOption("0");
  await explored(page, "Largest classes");
  assert.equal(await page.getByRole("link", { name: "Compare" }).count(), 0);
  // The heap of another process has the same number and file.
  await page.getByRole("link", { name: "Flame graph" }).click();
  await explored(page, "com.example.app.MainActivity");
  await page.getByRole("combobox", { name: "Heap dump" }).selectOption("1");
  await explored(page, "What grew");
  await page.getByRole("link", { name: "Flame graph" }).click();
  await explored(page, "app.Keeper");
  await page.goBack();
  await explored(page, "What grew");
  await page.locator(".tabs").getByRole("link", { name: "Compare" }).click();
  await explored(page, "Classes that changed");
  // What is typed on a list is searched for there.
  await page.locator(".explorer-search").fill("cache");
  await page.waitForURL(/#\/compare\?.*filter=cache/);
  await explored(page, "1 row");
  assert.deepEqual(await cells(0), ["app.Cache shrunk"]);
  assert.deepEqual(page.told.errors, []);
  await page.close();
});

test("25d: a file says what it does not have, and has no links to it", async () => {
  const heap = javaHeap();
  const [activity] = heap.store["objects?"].rows;
  const bitmap = { width: 4, height: 4, density: null, pixel_bytes: 64, is_estimated: false, storage: "java", format: "ARGB_8888", equal: 2, group: 4 };
  heap.store["objects?"].total = 105;
  heap.store["meta?"].contents = true;
  const row = { ...heap.store["object?id=0x12d0"], bitmap, held_by: activity };
  heap.store["bitmaps?"] = { total: 700, rows: [row, { ...row, id: "0x98" }, { ...row, id: "0x97", bitmap: { ...bitmap, equal: 1, group: null } }] };
  heap.store["search?in=strings"] = { total: 48_000, next: 1, rows: [{ ...activity, id: "0x99", name: "java.lang.String", text: "hello", length: 5, heap: "app" }] };
  heap.store["leaks?"].groups_total = 5;
  heap.store["waste?"].strings = { wasted_bytes: 600, groups: [{ count: 7, each_bytes: 100, wasted_bytes: 600, class: "java.lang.String", length: 8, value: "the same", example: "0x99", held_by: null }] };
  const [top] = heap.store["treemap?"].cells;
  heap.store["treemap?"].cells.push({ ...top, id: "0x99", above: 0 });
  const page = await chromium.open(encode({ java: [heap] }));
  const go = async (place, text) => {
    await page.evaluate((place) => (location.hash = place), place);
    await explored(page, text);
  };
  const text = () => page.locator(".explored").textContent();
  const links = (name) => page.locator(".explored").getByRole("link", { name }).count();
  await explored(page, "All 5 groups of leaks");
  await go("#/leaks", "4 more groups of leaks are not shown");
  await go("#/objects", "All objects");
  assert.match(await text(), /This file does not have 103 more objects\./);
  assert.equal(await page.locator("th a").count(), 0, "a part of a list has one order");
  await go("#/objects?filter=bitmap", "Objects whose class contains");
  assert.deepEqual(await page.locator(".grid tbody .object a").allTextContents(), ["android.graphics.Bitmap"]);
  await go("#/bitmaps", "3 bitmaps");
  assert.match(await text(), /2 equal.*This file does not have 697 more bitmaps\./s);
  assert.equal(await links("2 equal"), 2);
  await page.getByRole("link", { name: "2 equal" }).first().click();
  await explored(page, "2 bitmaps");
  assert.match(await text(), /Bitmaps with the same pixels/);
  await go("#/strings", "1 of 48,000 strings");
  assert.equal(await links("java.lang.String"), 0, "the object is not in the file");
  await go("#/strings?filter=hell", "1 found in the largest 1 of 48,000 strings");
  assert.match(await text(), /first 120 characters contain/);
  await go("#/arrays", "This file does not have a list of arrays. To include it, use --contents.");
  await go("#/waste", "the same");
  assert.equal(await links("7"), 0, "the copies can be others than those in the file");
  await go("#/dominators", "Dominator tree");
  const cell = page.locator(".treemap .cell");
  assert.deepEqual([await cell.getAttribute("href"), await cell.getAttribute("role")], [null, "img"], "the object is not in the file");
  await go("#/object/0x12d0", "Fields");
  assert.equal(await links("android.graphics.Bitmap"), 1, "only on the path: its class does not have a list");
  await go("#/object/0x1", "This file does not have this part of the heap");
  assert.equal(await page.getByRole("button", { name: "Try again" }).count(), 0);
  assert.deepEqual(page.told.errors, []);
  await page.close();
});
