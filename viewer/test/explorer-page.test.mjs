// Views of the explorer with answers of this test: keyboard, order, focus.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { browser } from "./browser.mjs";
import { encode } from "./encode.mjs";
import { javaHeap } from "./samples.mjs";
import { facts, focused, of, openIn, shown, URL_OF_PAGE } from "./stub.mjs";

let chromium;
before(async () => (chromium = await browser()));
after(() => chromium.close());

const open = (...how) => openIn(chromium, ...how);

test("sorted columns say their order, and objects are sorted from the smallest", async () => {
  const { page, asked, errors } = await open(undefined, { hash: "#/classes" });
  await shown(page, "byte[]");
  const order = (title) => page.locator("th", { hasText: title }).getAttribute("aria-sort");
  assert.equal(await order("Retained"), "descending");
  await page.click("th >> text=Class");
  await page.waitForURL(/sort=name/);
  await page.waitForFunction(() => document.querySelector("th[aria-sort]")?.textContent === "Class");
  assert.equal(await order("Class"), "ascending");
  assert.equal(await focused(page), "Class", "the link keeps the focus");
  await page.click("th >> text=Class");
  await page.waitForFunction(() => document.querySelector("th[aria-sort=descending]")?.textContent === "Class");
  await page.goto(`${URL_OF_PAGE}#/objects`);
  await shown(page, "All objects");
  await page.click("th >> text=Retained");
  await page.waitForFunction(() => document.querySelector("th[aria-sort=ascending]"));
  const request = asked.findLast(({ operation }) => operation === "objects");
  assert.equal(request.reverse, "");
  assert.deepEqual(errors, []);
  await page.close();
});

test("all referrers are reachable", async () => {
  const heap = javaHeap();
  const [row] = heap.store["referrers?id=0x12d0"].rows;
  const { page, errors } = await open((operation, query) => {
    if (operation !== "referrers") return undefined;
    const offset = Number(query.get("offset"));
    const count = Math.min(Number(query.get("limit")), 250 - offset);
    return { json: { total: 250, rows: Array.from({ length: count }, (_, at) => ({ ...row, id: `0x${(offset + at).toString(16)}` })) } };
  }, { heap, hash: "#/object/0x12d0" });
  await shown(page, "Referrers (250)");
  const rows = page.locator(".wide[aria-label=Referrers] tbody tr");
  assert.equal(await rows.count(), 100);
  await shown(page, "100 of 250 objects");
  // Two clicks ask once.
  await page.getByRole("button", { name: "Show more" }).dblclick();
  await shown(page, "200 of 250 objects");
  await page.getByRole("button", { name: "Show more" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".wide[aria-label=Referrers] tbody tr").length === 250);
  assert.equal(await page.evaluate(() => document.activeElement.ariaLabel), "Referrers", "the list has the focus of the button that is gone");
  assert.equal(new Set(await rows.locator("code.soft").allTextContents()).size, 250);
  assert.equal(await page.getByRole("button", { name: "Show more" }).count(), 0);
  assert.deepEqual(errors, []);
  await page.close();
});

test("a list that is scrolled keeps the focus on its row, or has it itself", async () => {
  const heap = javaHeap();
  const [row] = heap.store["objects?"].rows;
  const { page } = await open((operation) => (operation === "objects" ? { json: { total: 200, rows: Array.from({ length: 200 }, (_, at) => ({ ...row, id: `0x${at}` })) } } : undefined), { hash: "#/objects" });
  await shown(page, "of 200 objects");
  await page.locator("tr[aria-rowindex='10'] a").focus();
  const active = () => page.evaluate(() => document.activeElement.closest("tr, .grid").getAttribute("aria-rowindex") ?? document.activeElement.className);
  const scroll = async (top, first) => {
    await page.evaluate((top) => (document.querySelector(".grid").scrollTop = top), top);
    await page.waitForFunction((first) => document.querySelector(".grid tbody tr:not([aria-hidden])").getAttribute("aria-rowindex") === String(first), first);
  };
  await scroll(8 * 28, 4);
  assert.equal(await active(), "10");
  await scroll(100 * 28, 96);
  assert.equal(await active(), "grid");
  await page.close();
});

test("hidden contents are said to be hidden, equal bitmaps among them are marked", async () => {
  const heap = javaHeap();
  const bitmap = { width: 4, height: 4, density: null, pixel_bytes: 64, is_estimated: false, storage: "java", format: "ARGB_8888", equal: 2, group: 0 };
  heap.store["bitmaps?"] = { total: 1, rows: [{ ...heap.store["object?id=0x12d0"], bitmap, held_by: null }] };
  const { page } = await open((operation) => (operation === "meta" ? facts(heap, { heap: of(heap, { source: "hprof" }) }) : undefined), { heap, hash: "#/bitmaps" });
  await shown(page, "Texts, values and pixels are hidden.");
  assert.equal(await page.getByRole("link", { name: "2 equal" }).getAttribute("href"), "#/bitmaps/0x12d0");
  await page.close();
});

test("the copies of a text are the strings that are equal to it", async () => {
  const heap = javaHeap();
  const string = { ...heap.store["objects?"].rows[0], id: "0x99", name: "java.lang.String", text: "the same", length: 8, heap: "app" };
  heap.store["waste?"].strings = { wasted_bytes: 600, groups: [{ count: 7, each_bytes: 100, wasted_bytes: 600, class: "java.lang.String", length: 8, value: "the same", example: "0x99", held_by: null }] };
  heap.store["search?equal=0x99&in=strings"] = { total: 40, next: null, rows: [string, { ...string, id: "0x9a" }] };
  const { page, errors } = await open(undefined, { heap, hash: "#/waste" });
  await shown(page, "the same");
  await page.getByRole("link", { name: "7", exact: true }).click();
  await shown(page, "2 found in 40 strings");
  assert.equal(await page.locator(".explored h2:not(.off-screen)").textContent(), "Equal strings");
  await page.getByRole("link", { name: "All strings" }).click();
  await page.waitForURL(/#\/strings$/);
  assert.deepEqual(errors, []);
  await page.close();
});

test("a new view gets the focus and is seen from its beginning", async () => {
  const { page, errors } = await open(undefined, { hash: "#/overview" });
  await shown(page, "Largest classes");
  await page.setViewportSize({ width: 400, height: 300 });
  await page.keyboard.press("Tab");
  assert.equal(await focused(page), "Skip to the content");
  await page.keyboard.press("Enter");
  assert.equal(await focused(page), "Overview");
  await page.locator(".explored").getByRole("link", { name: "com.example.app.MainActivity" }).last().click();
  await shown(page, "Fields");
  assert.equal(await focused(page), "Object 0x12c0");
  assert.ok((await page.evaluate(() => scrollY)) < 100);
  assert.equal(await page.locator(".tabs [aria-current]").textContent(), "Overview", "the tab from which it was opened");
  await page.locator(".tabs a", { hasText: "Waste" }).click();
  await shown(page, "No waste found");
  const isVisible = await page.locator(".tabs [aria-current]").evaluate((tab) => {
    const [inner, outer] = [tab, tab.parentElement].map((each) => each.getBoundingClientRect());
    return inner.left >= outer.left && inner.right <= outer.right;
  });
  assert.ok(isVisible, "the current tab is scrolled into view");
  assert.deepEqual(errors, []);
  await page.close();
});

test("a view that the user goes back to is where it was", async () => {
  const heap = javaHeap();
  const bitmap = { width: 4, height: 4, density: null, pixel_bytes: 64, is_estimated: false, storage: "java", format: null, equal: 1, group: null };
  heap.store["bitmaps?"] = { total: 90, rows: Array.from({ length: 90 }, () => ({ ...heap.store["object?id=0x12d0"], bitmap, held_by: null })) };
  const { page, errors } = await open(undefined, { heap, hash: "#/bitmaps" });
  await shown(page, "90 bitmaps");
  await page.evaluate(() => scrollTo(0, 900));
  await page.waitForFunction(() => history.state?.top === 900);
  await page.locator("tbody tr:nth-child(40) a").click();
  await shown(page, "Fields");
  assert.ok((await page.evaluate(() => scrollY)) < 100);
  await page.goBack();
  await shown(page, "90 bitmaps");
  await page.waitForFunction(() => scrollY === 900);
  assert.deepEqual(errors, []);
  await page.close();
});

test("a treemap and a flame graph are one tab stop each", async () => {
  const { page, heap } = await open(undefined, { hash: "#/flame" });
  await shown(page, "105 objects");
  const stops = page.locator(".flames a[tabindex='0']");
  assert.equal(await stops.count(), 1);
  await stops.focus();
  await page.keyboard.press("ArrowDown");
  assert.match(await focused(page), /MainActivity \[system class\]/);
  await page.keyboard.press("ArrowDown");
  assert.match(await focused(page), /Bitmap/);
  await page.keyboard.press("Home");
  assert.equal(await focused(page), "Heap");
  assert.equal(await stops.count(), 1);
  const cell = (id, above, bytes) => ({ id, name: `app.Cell${id}`, above, bytes, own_bytes: bytes, rest: 0, rest_bytes: 0 });
  heap.store["treemap?"] = { cells: [{ ...cell("0x1", null, 900), own_bytes: 100 }, { ...cell("0x2", 0, 500), own_bytes: 100 }, cell("0x3", 1, 400), cell("0x4", 0, 300)] };
  await page.goto(`${URL_OF_PAGE}#/dominators`);
  await shown(page, "Dominator tree");
  const cells = page.locator(".treemap a[tabindex='0']");
  assert.equal(await page.locator(".treemap a").count(), 3);
  assert.equal(await cells.count(), 1);
  await cells.focus();
  assert.match(await focused(page), /Cell0x2/);
  await page.keyboard.press("ArrowDown");
  assert.match(await focused(page), /Cell0x3/);
  await page.keyboard.press("End");
  assert.match(await focused(page), /Cell0x4/);
  assert.equal(await cells.count(), 1);
  assert.equal(await page.locator(".treemap a").first().getAttribute("href"), "#/dominators/0x2");
  // It dominates nothing that could be listed.
  await page.keyboard.press("Enter");
  await page.waitForURL(/#\/object\/0x4$/);
  await page.close();
});

test("an ID without 0x is found if no class has it in its name", async () => {
  const { page } = await open((operation, query) => {
    const heap = javaHeap();
    if (operation === "classes" && query.get("filter")) return { json: { total: query.get("filter") === "deadbeef" ? 1 : 0, rows: [] } };
    const known = ["0x12c5cf80", "0xf3f7d298", "0x4085312904", "0xf380ed88"];
    if (operation === "object" && known.includes(query.get("id"))) return { json: heap.store["object?id=0x12c0"] };
  });
  await shown(page, "Largest classes");
  await page.fill("input[type=search]", "12C5CF80");
  await page.waitForURL(/#\/object\/0x12c5cf80$/);
  assert.equal(await page.evaluate(() => document.activeElement.type), "search", "who types goes on typing");
  // Decimal, as SQL prints addresses, if there is no such hexadecimal ID.
  await page.fill("input[type=search]", "4093104792");
  await page.waitForURL(/#\/object\/0xf3f7d298$/);
  await page.fill("input[type=search]", "4085312904");
  await page.waitForURL(/#\/object\/0x4085312904$/);
  await page.fill("input[type=search]", "99999999");
  await page.waitForURL(/#\/object\/0x99999999$/);
  await page.fill("input[type=search]", "deadbeef");
  await page.keyboard.press("Enter");
  await page.waitForURL(/#\/classes\?filter=deadbeef$/);
  await page.waitForFunction(() => document.activeElement.textContent === "Classes");
  await page.close();
});

test("halves are rounded to even digits, as by the program", async () => {
  const { page, heap } = await open(undefined, { hash: "#/classes" });
  await shown(page, "byte[]");
  Object.assign(heap.store["classes?by=package"].rows[0], { shallow_bytes: 63.25 * 1024 });
  await page.click(".explored >> text=Packages");
  await shown(page, "63.2 KiB");
  await page.close();
});

test("a short page is dark to its end", async () => {
  const { page } = await open(undefined, { hash: "#/waste" });
  await shown(page, "No waste found");
  const colors = () => page.evaluate(() => [document.documentElement, document.body, document.querySelector("#heaptap-app")].map((each) => getComputedStyle(each).backgroundColor));
  for (const [colorScheme, theme, color] of [["light", null, "rgb(255, 255, 255)"], ["dark", null, "rgb(13, 17, 23)"], ["light", "dark", "rgb(13, 17, 23)"], ["dark", "light", "rgb(255, 255, 255)"]]) {
    await page.emulateMedia({ colorScheme });
    await page.evaluate((theme) => (theme ? (document.documentElement.dataset.theme = theme) : delete document.documentElement.dataset.theme), theme);
    assert.deepEqual(await colors(), [color, color, color], `${colorScheme}, ${theme}`);
  }
  await page.close();
});

test("copied rows are no formulas", async () => {
  const heap = javaHeap();
  const rows = { columns: ["=text", "number"], rows: [["=SUM(A1)", -5], ["a=1; ＝1", 0], ["-9223372036854775808", 1]], is_cut: false };
  const { page, errors } = await open((operation) => (operation === "sql" ? { json: rows } : operation === "meta" ? facts(heap, { sql: true }) : undefined), { heap, hash: "#/sql?sql=SELECT+1" });
  await shown(page, "SUM(A1)");
  await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => (globalThis.copied = text) } }));
  await page.getByRole("button", { name: "Copy as TSV" }).click();
  assert.equal(await page.evaluate(() => globalThis.copied), "'=text\tnumber\n'=SUM(A1)\t-5\na=1;' ＝1\t0\n-9223372036854775808\t1\n");
  await page.getByRole("button", { name: "Copy as CSV" }).click();
  assert.equal(await page.evaluate(() => globalThis.copied), "'=text,number\n'=SUM(A1),-5\na=1;' ＝1,0\n-9223372036854775808,1\n");
  assert.deepEqual(errors, []);
  await page.close();
});

test("heaps of one process have the names of their files, and the page opens on the described one", async () => {
  const heap = javaHeap();
  const titlesOf = async (...dumps) => {
    const page = await chromium.open(encode({ java: dumps.map((dump) => ({ ...heap, dump, number: 1 })) }));
    const titles = await page.locator("label", { hasText: "Heap dump" }).locator("option").allTextContents();
    const chosen = await page.locator("label", { hasText: "Heap dump" }).locator("option:checked").textContent();
    const card = await page.locator('section[aria-label="Where the memory is"]').textContent();
    await page.close();
    assert.equal(chosen, titles[1]);
    assert.ok(card.includes(chosen), card);
    return titles;
  };
  assert.deepEqual(await titlesOf("x/before.hprof", "x/after.hprof"), ["com.example.app · before.hprof", "com.example.app · after.hprof"]);
  assert.deepEqual(await titlesOf("1/app.hprof", "2/app.hprof"), ["com.example.app · 1/app.hprof", "com.example.app · 2/app.hprof"]);
});
