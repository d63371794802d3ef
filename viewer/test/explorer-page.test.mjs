// The page of the explorer with answers of this test: what it asks for, its keyboard, failures.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { browser } from "./browser.mjs";
import { comparedHeap, javaHeap } from "./samples.mjs";

const dist = (file) => readFileSync(new URL(`../dist/${file}`, import.meta.url), "utf8");
const HTML = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>heaptap</title><style>${dist("report.css")}</style></head><body><div id="heaptap-app"></div><script>${dist("explore.js")}</script></body></html>`;
const URL_OF_PAGE = "http://heaptap.test/";

let chromium;
before(async () => (chromium = await browser()));
after(() => chromium.close());

/** Returns the key of an answer in a store. */
function key(operation, query) {
  const part = ["offset", "limit", "sort", "reverse", "filter", "most", "text", "from", "cells", "generation"];
  const words = [...query].filter(([name]) => !part.includes(name)).map(([name, value]) => `${name}=${value}`);
  return `${operation}?${words.sort().join("&")}`;
}

/** Opens the page. `answer` gets the operation and the query; undefined is the answer of the sample. */
async function open(answer = () => undefined, { heap = javaHeap(), hash = "" } = {}) {
  const page = await chromium.context.newPage();
  const asked = [];
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.route(`${URL_OF_PAGE}**`, async (route) => {
    const url = new URL(route.request().url());
    if (!url.pathname.startsWith("/api/")) return route.fulfill({ contentType: "text/html", body: HTML });
    const operation = url.pathname.slice("/api/".length);
    asked.push({ operation, ...Object.fromEntries(url.searchParams) });
    const given = await answer(operation, url.searchParams);
    if (given === "abort") return route.abort();
    const { status = 200, json = heap.store[key(operation, url.searchParams)] } = given ?? {};
    return route.fulfill(json === undefined ? { status: 404, json: { error: "no answer" } } : { status, json });
  });
  await page.goto(URL_OF_PAGE + hash);
  return { page, asked, errors, heap };
}

async function shown(page, text) {
  await page.waitForFunction((text) => {
    const main = document.querySelector(".explored");
    return main && !main.hasAttribute("aria-busy") && main.textContent.includes(text);
  }, text);
}

const facts = (heap, more) => ({ json: { ...heap.store["meta?"], ...more } });
const of = (heap, more) => ({ ...heap.store["meta?"].heap, ...more });
const focused = (page) => page.evaluate(() => document.activeElement.textContent);

test("requests name the heap, and the heap of another page is drawn", async () => {
  let generation = 1;
  const { page, asked, errors, heap } = await open((operation, query) => {
    if (operation === "meta") return facts(javaHeap(), { generation });
    if (query.get("generation") !== String(generation)) return { status: 409, json: { error: "another heap" } };
  }, { hash: "#/classes" });
  await shown(page, "byte[]");
  assert.ok(asked.every((each) => each.operation === "meta" || each.generation === "1"), JSON.stringify(asked));
  generation = 2;
  heap.store["classes?by=package"].rows[0].name = "of.another.heap";
  await page.click(".explored >> text=Packages");
  await shown(page, "of.another.heap");
  assert.equal(asked.at(-1).generation, "2");
  assert.deepEqual(errors, []);
  await page.close();
});

test("the list of dumps is the same element after a request for the state, and asks after a pause", async () => {
  let number = 2;
  const { page, asked } = await open((operation) => {
    const heap = javaHeap();
    if (operation === "meta") return facts(heap, { step: "computing", generation: number, heap: of(heap, { number, dumps: 3 }) });
    if (operation === "show") return { json: {} };
  });
  await shown(page, "Largest classes");
  const select = page.locator("select[aria-label=Dump]");
  await select.focus();
  const option = await select.locator("option").first().elementHandle();
  const before = asked.filter(({ operation }) => operation === "meta").length;
  await page.evaluate(() => {
    globalThis.changes = 0;
    new MutationObserver((all) => (globalThis.changes += all.length)).observe(document.querySelector(".tag[role=status]"), { childList: true, characterData: true, subtree: true });
  });
  await page.waitForTimeout(1200);
  assert.ok(asked.filter(({ operation }) => operation === "meta").length >= before + 2);
  assert.ok(await option.evaluate((each) => each.isConnected));
  assert.equal(await page.evaluate(() => globalThis.changes), 0, "the same text is not set again");
  await select.selectOption("1");
  await select.selectOption("3");
  assert.equal(asked.filter(({ operation }) => operation === "show").length, 0);
  number = 3;
  await page.waitForTimeout(900);
  assert.deepEqual(asked.filter(({ operation }) => operation === "show").map((each) => each.number), ["3"]);
  await page.close();
});

test("the state has no words before there is a heap, and its failures are not the end", async () => {
  let fails = 0;
  const { page, asked } = await open((operation) => {
    if (operation !== "meta") return undefined;
    if (fails-- > 0) return "abort";
    return facts(javaHeap(), { heap: null, error: null, idle_seconds: 3 });
  });
  const state = page.locator("header [role=status]");
  await shown(page, "Reading the heap");
  assert.equal(await state.textContent(), "");
  fails = 1;
  const before = asked.length;
  await page.waitForTimeout(2800);
  assert.ok(asked.length > before + 1, "it asks again after a failure");
  assert.equal(await state.textContent(), "");
  await page.close();
});

test("the page is in use as often as the server wants", async () => {
  const { page, asked } = await open((operation) => (operation === "meta" ? facts(javaHeap(), { idle_seconds: 1.5 }) : undefined));
  await shown(page, "Largest classes");
  await page.waitForTimeout(1800);
  assert.ok(asked.filter(({ operation }) => operation === "meta").length >= 3);
  await page.close();
});

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
  assert.equal(new Set(await rows.locator("code.soft").allTextContents()).size, 250);
  assert.equal(await page.getByRole("button", { name: "Show more" }).count(), 0);
  assert.deepEqual(errors, []);
  await page.close();
});

test("a failed part of a list has a reason and a button", async () => {
  let fails = true;
  const heap = javaHeap();
  const [row] = heap.store["objects?"].rows;
  const { page } = await open((operation, query) => {
    if (operation !== "objects") return undefined;
    if (query.get("offset") !== "0" && fails) return { status: 500, json: { error: "out of order" } };
    return { json: { total: 1000, rows: Array.from({ length: 200 }, () => row) } };
  }, { hash: "#/objects" });
  await shown(page, "of 1,000 objects");
  await page.evaluate(() => (document.querySelector(".grid").scrollTop = 1e6));
  await shown(page, "Cannot read these rows: Out of order");
  fails = false;
  await page.getByRole("button", { name: "Try again" }).click();
  await shown(page, "1,000 of 1,000 objects");
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
  await shown(page, "could be saved");
  const isVisible = await page.locator(".tabs [aria-current]").evaluate((tab) => {
    const [inner, outer] = [tab, tab.parentElement].map((each) => each.getBoundingClientRect());
    return inner.left >= outer.left && inner.right <= outer.right;
  });
  assert.ok(isVisible, "the current tab is scrolled into view");
  assert.deepEqual(errors, []);
  await page.close();
});

test("a treemap and a flame graph are one tab stop each", async () => {
  const { page } = await open(undefined, { hash: "#/flame" });
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
  await page.close();
});

test("an ID without 0x is found if no class has it in its name", async () => {
  const { page } = await open((operation, query) => {
    const heap = javaHeap();
    if (operation === "classes" && query.get("filter")) return { json: { total: query.get("filter") === "deadbeef" ? 1 : 0, rows: [] } };
    if (operation === "object" && query.get("id") === "0x12c5cf80") return { json: heap.store["object?id=0x12c0"] };
  });
  await shown(page, "Largest classes");
  await page.fill("input[type=search]", "12C5CF80");
  await page.waitForURL(/#\/object\/0x12c5cf80$/);
  assert.equal(await page.evaluate(() => document.activeElement.type), "search", "who types goes on typing");
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
  await shown(page, "could be saved");
  const colors = () => page.evaluate(() => [document.documentElement, document.body, document.querySelector("#heaptap-app")].map((each) => getComputedStyle(each).backgroundColor));
  for (const [colorScheme, theme, color] of [["light", null, "rgb(255, 255, 255)"], ["dark", null, "rgb(13, 17, 23)"], ["light", "dark", "rgb(13, 17, 23)"], ["dark", "light", "rgb(255, 255, 255)"]]) {
    await page.emulateMedia({ colorScheme });
    await page.evaluate((theme) => (theme ? (document.documentElement.dataset.theme = theme) : delete document.documentElement.dataset.theme), theme);
    assert.deepEqual(await colors(), [color, color, color], `${colorScheme}, ${theme}`);
  }
  await page.close();
});

test("a statement that is not run yet outlives the comparison, and is not in the search field", async () => {
  const heap = comparedHeap();
  let isCompared = false;
  const { page } = await open((operation) => {
    if (operation === "meta") return facts(heap, { sql: true, step: isCompared ? "" : "comparing", before: isCompared ? heap.store["meta?"].before : null });
    if (operation === "sql") return { json: { columns: ["address"], rows: [["no number"], [-1], [1.5], [291]], is_cut: false } };
  }, { heap, hash: "#/sql?sql=SELECT+address" });
  await shown(page, "4 rows");
  assert.equal(await page.inputValue("input[type=search]"), "");
  assert.deepEqual(await page.locator(".explored td").allTextContents(), ["no number", "0xffffffffffffffff", "1.5", "0x123"]);
  await page.fill("textarea", "SELECT 2");
  isCompared = true;
  await page.waitForSelector(".tabs >> text=Compare");
  assert.equal(await page.inputValue("textarea"), "SELECT 2");
  await page.close();
});
