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
/** Browser of pages whose clock stands still: a clock is that of all pages. */
let stopped;
before(async () => {
  [chromium, stopped] = await Promise.all([browser(), browser()]);
  await stopped.context.clock.install({ time: 0 });
  await stopped.context.clock.pauseAt(1000);
});
after(() => Promise.all([chromium.close(), stopped.close()]));

/** Returns the key of an answer in a store. */
function key(operation, query) {
  const part = ["offset", "limit", "sort", "reverse", "filter", "most", "text", "from", "cells", "generation"];
  const words = [...query].filter(([name]) => !part.includes(name)).map(([name, value]) => `${name}=${value}`);
  return `${operation}?${words.sort().join("&")}`;
}

/** Opens the page. `answer` gets the operation and the query; undefined is the answer of the sample. */
async function open(answer = () => undefined, { heap = javaHeap(), hash = "", from = chromium } = {}) {
  const page = await from.context.newPage();
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

/** Runs the clock of a page, and waits until what it asks for then has an answer. */
async function run(page, ms) {
  await page.clock.runFor(ms);
  await page.evaluate(() => fetch("later"));
}

/** Runs the clock of a page in steps until a condition holds, for at most so many ms. */
async function until(page, holds, step, ms) {
  for (let at = 0; !holds(); at += step) {
    assert.ok(at < ms, `not within ${ms} ms: ${holds}`);
    await run(page, step);
  }
}

const numbers = (asked) => asked.filter(({ operation }) => operation === "show").map((each) => each.number);
const counted = (asked) => asked.filter(({ operation }) => operation === "meta").length;

test("the list of dumps is the same element after a request for the state", async () => {
  const { page, asked } = await open((operation) => {
    const heap = javaHeap();
    if (operation === "meta") return facts(heap, { step: "computing", heap: of(heap, { number: 2, dumps: 3 }) });
  }, { from: stopped });
  await shown(page, "Largest classes");
  const select = page.locator("select[aria-label=Dump]");
  await select.focus();
  const option = await select.locator("option").first().elementHandle();
  await page.evaluate(() => {
    globalThis.changes = 0;
    new MutationObserver((all) => (globalThis.changes += all.length)).observe(document.querySelector(".tag[role=status]"), { childList: true, characterData: true, subtree: true });
  });
  const before = counted(asked);
  await until(page, () => counted(asked) >= before + 2, 250, 5000);
  assert.ok(await option.evaluate((each) => each.isConnected));
  assert.equal(await page.evaluate(() => globalThis.changes), 0, "the same text is not set again");
  await page.close();
});

test("a dump is chosen after a pause, whatever comes meanwhile, and the one that is shown is not read again", async () => {
  const heap = comparedHeap();
  let number = 2;
  let isCompared = false;
  const { page, asked } = await open((operation) => {
    if (operation === "meta") return facts(heap, { step: isCompared ? "" : "comparing", generation: number, heap: of(heap, { number, dumps: 3 }), before: isCompared ? heap.store["meta?"].before : null });
    if (operation === "show") return { json: {} };
  }, { from: stopped, heap });
  await shown(page, "Largest classes");
  const select = page.locator("select[aria-label=Dump]");
  await select.selectOption("1");
  await run(page, 399);
  await select.selectOption("2");
  await run(page, 500);
  await select.selectOption("1");
  await run(page, 399);
  assert.deepEqual(numbers(asked), [], "no dump is read on the way, nor the one that is shown");
  await select.selectOption("3");
  isCompared = true;
  await run(page, 399);
  await page.waitForSelector(".tabs >> text=Compare");
  assert.equal(await select.inputValue(), "3", "the comparison does not change the choice");
  assert.deepEqual(numbers(asked), []);
  number = 3;
  await run(page, 1);
  await page.waitForFunction(() => location.hash === "#/overview");
  assert.deepEqual(numbers(asked), ["3"]);
  assert.equal(asked.find(({ operation }) => operation === "show").generation, "2");
  await shown(page, "Largest classes");
  assert.equal(await select.inputValue(), "3");
  await page.close();
});

test("a dump that cannot be chosen leaves the view, and the reason stays", async () => {
  const { page, asked } = await open((operation) => {
    const heap = javaHeap();
    if (operation === "meta") return facts(heap, { step: "computing", heap: of(heap, { number: 2, dumps: 3 }) });
    if (operation === "show") return { status: 400, json: { error: "no such dump" } };
  }, { from: stopped, hash: "#/classes" });
  await shown(page, "byte[]");
  await page.selectOption("select[aria-label=Dump]", "1");
  await run(page, 400);
  const state = page.locator(".tag[role=status]");
  await page.waitForFunction(() => document.querySelector(".tag[role=status]").textContent === "No such dump");
  const before = counted(asked);
  await until(page, () => counted(asked) >= before + 2, 250, 5000);
  assert.equal(await state.textContent(), "No such dump");
  assert.equal(await page.inputValue("select[aria-label=Dump]"), "2");
  assert.match(page.url(), /#\/classes$/);
  await shown(page, "byte[]");
  await page.close();
});

test("a dump that is chosen on a page of another heap has no effect", async () => {
  let generation = 1;
  const { page, asked } = await open((operation, query) => {
    const heap = javaHeap();
    if (operation === "meta") return facts(heap, { generation, heap: of(heap, { number: generation, dumps: 3 }) });
    if (query.get("generation") !== String(generation)) return { status: 409, json: { error: "another heap" } };
  }, { from: stopped, hash: "#/classes" });
  await shown(page, "byte[]");
  generation = 2;
  await page.selectOption("select[aria-label=Dump]", "3");
  await run(page, 400);
  await page.waitForFunction(() => document.querySelector("select[aria-label=Dump]").value === "2");
  await shown(page, "byte[]");
  assert.equal(asked.findLast(({ operation }) => operation === "classes").generation, "2");
  assert.match(page.url(), /#\/classes$/);
  assert.equal(await page.locator(".tag[role=status]").textContent(), "");
  await page.close();
});

test("the state has no words before there is a heap, and its failures are not the end", async () => {
  let fails = 0;
  const { page, asked } = await open((operation) => {
    if (operation !== "meta") return undefined;
    if (fails-- > 0) return "abort";
    return facts(javaHeap(), { heap: null, error: null, idle_seconds: 3 });
  }, { from: stopped });
  const state = page.locator("header [role=status]");
  await shown(page, "Reading the heap");
  assert.equal(await state.textContent(), "");
  fails = 1;
  const before = asked.length;
  await until(page, () => asked.length > before + 1, 250, 10_000);
  assert.equal(await state.textContent(), "");
  await page.close();
});

test("the page is in use as often as the server wants", async () => {
  const { page, asked } = await open((operation) => (operation === "meta" ? facts(javaHeap(), { idle_seconds: 1.5 }) : undefined), { from: stopped });
  await shown(page, "Largest classes");
  const before = counted(asked);
  await until(page, () => counted(asked) >= before + 2, 500, 5000);
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
  assert.equal(await page.evaluate(() => document.activeElement.ariaLabel), "Referrers", "the list has the focus of the button that is gone");
  assert.equal(new Set(await rows.locator("code.soft").allTextContents()).size, 250);
  assert.equal(await page.getByRole("button", { name: "Show more" }).count(), 0);
  assert.deepEqual(errors, []);
  await page.close();
});

test("a failed part of a list has a reason and a button", async () => {
  let fails = true;
  const heap = javaHeap();
  const [row] = heap.store["objects?"].rows;
  let answer;
  const { page } = await open(async (operation, query) => {
    if (operation !== "objects") return undefined;
    if (query.get("offset") === "400" && fails) return { status: 500, json: { error: "out of order" } };
    if (query.get("offset") === "600" && fails) await new Promise((later) => (answer = later));
    return { json: { total: 1000, rows: Array.from({ length: 200 }, () => row) } };
  }, { hash: "#/objects" });
  await shown(page, "of 1,000 objects");
  // Rows of two parts are visible: the later success of one does not hide the failure of the other.
  await page.evaluate(() => (document.querySelector(".grid").scrollTop = 595 * 28));
  await shown(page, "Cannot read these rows: Out of order");
  answer();
  await page.waitForFunction(() => document.querySelector("tr[aria-rowindex='604'] a"));
  await shown(page, "Cannot read these rows: Out of order");
  fails = false;
  await page.getByRole("button", { name: "Try again" }).click();
  await shown(page, "of 1,000 objects");
  await page.waitForFunction(() => document.querySelector("tr[aria-rowindex='600'] a"));
  await page.close();
});

test("a list that another order replaces does not say that its rows cannot be read", async () => {
  const heap = javaHeap();
  const [row] = heap.store["objects?"].rows;
  let isWaiting = false;
  const { page } = await open(async (operation, query) => {
    if (operation !== "objects") return undefined;
    if (query.get("offset") !== "0" || query.get("sort") === "shallow") {
      isWaiting = true;
      await new Promise(() => undefined);
    }
    return { json: { total: 1000, rows: Array.from({ length: 200 }, () => row) } };
  }, { hash: "#/objects" });
  await shown(page, "of 1,000 objects");
  await page.evaluate(() => (document.querySelector(".grid").scrollTop = 1e6));
  for (let n = 0; !isWaiting; n++) {
    assert.ok(n < 1000);
    await page.evaluate(() => fetch("later"));
  }
  await page.click("th >> text=Shallow");
  await page.waitForSelector(".explored[aria-busy]");
  await page.evaluate(() => fetch("later"));
  assert.doesNotMatch(await page.textContent(".explored"), /Cannot read/);
  await page.close();
});

test("only the last statement has a result", async () => {
  const answers = [];
  const { page } = await open((operation) => {
    if (operation === "meta") return facts(javaHeap(), { sql: true });
    if (operation === "sql") return new Promise((answer) => answers.push(answer));
  }, { hash: "#/sql?sql=SELECT+1" });
  const asks = async (count) => {
    for (let n = 0; answers.length < count; n++) {
      assert.ok(n < 1000);
      await page.evaluate(() => fetch("later"));
    }
  };
  await page.waitForSelector("textarea");
  await asks(1);
  await page.click(".explored >> text=Run");
  await asks(2);
  answers[0]({ status: 400, json: { error: "a later statement was run" } });
  await page.evaluate(() => fetch("later"));
  assert.match(await page.textContent(".explored"), /Running/);
  await page.click(".explored >> text=Run");
  await asks(3);
  answers[2]({ json: { columns: ["one"], rows: [[1]], is_cut: false } });
  await shown(page, "1 row");
  answers[1]({ status: 400, json: { error: "a later statement was run" } });
  await page.evaluate(() => fetch("later"));
  await shown(page, "1 row");
  assert.equal(await page.locator(".explored [role=alert]").count(), 0);
  await page.close();
});

test("a view whose drawing a later state ends is entered all the same", async () => {
  const heap = comparedHeap();
  let isCompared = false;
  let isHeld = false;
  const { page } = await open(async (operation) => {
    if (operation === "meta") return facts(heap, { step: isCompared ? "" : "comparing", before: isCompared ? heap.store["meta?"].before : null });
    // The drawing without the comparison does not end.
    if (operation === "classes" && isHeld && !isCompared) await new Promise(() => undefined);
  }, { heap, hash: "#/waste" });
  await shown(page, "could be saved");
  isHeld = true;
  await page.locator(".tabs a", { hasText: "Overview" }).click();
  await page.waitForSelector(".explored[aria-busy]");
  isCompared = true;
  await shown(page, "What grew");
  assert.equal(await focused(page), "Overview");
  assert.equal(await page.evaluate(() => document.activeElement.localName), "h2");
  await page.close();
});

test("more typing withdraws an earlier text, and the field keeps the focus", async () => {
  let answer;
  const { page, asked } = await open(async (operation, query) => {
    if (operation !== "classes" || query.get("filter") !== "deadbeef") return undefined;
    await new Promise((later) => (answer = later));
    return { json: { total: 1, rows: [] } };
  });
  await shown(page, "Largest classes");
  await page.fill("input[type=search]", "deadbeef");
  await page.keyboard.press("Enter");
  for (let n = 0; !answer; n++) {
    assert.ok(n < 1000);
    await page.evaluate(() => fetch("later"));
  }
  await page.locator("input[type=search]").pressSequentially(".Item");
  await page.waitForURL(/filter=deadbeef\.Item$/);
  answer();
  await page.evaluate(() => fetch("later"));
  assert.match(page.url(), /filter=deadbeef\.Item$/);
  assert.equal(await page.evaluate(() => document.activeElement.type), "search");
  assert.ok(asked.some((each) => each.filter === "deadbeef.Item"));
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
  await page.keyboard.press("Enter");
  await page.waitForURL(/#\/dominators\/0x4$/);
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
