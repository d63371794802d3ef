// What the explorer asks for and when, with answers of this test: other heaps, failures, late answers.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { browser } from "./browser.mjs";
import { comparedHeap, javaHeap } from "./samples.mjs";
import { answered, facts, focused, isAsked, of, openIn, shown } from "./stub.mjs";

let chromium;
/** Browser of pages whose clock stands still: a clock is that of all pages. */
let stopped;
before(async () => {
  [chromium, stopped] = await Promise.all([browser(), browser()]);
  await stopped.context.clock.install({ time: 0 });
  await stopped.context.clock.pauseAt(1000);
});
after(() => Promise.all([chromium.close(), stopped.close()]));

const open = (...how) => openIn(chromium, ...how);
/** Opens a page whose clock runs by `run` only. */
const openStopped = (...how) => openIn(stopped, ...how);

test("requests name the heap, and the heap of another page is drawn", async () => {
  let generation = 1;
  const { page, asked, errors, heap } = await openStopped((operation, query) => {
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
  await answered(page);
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
  const { page, asked } = await openStopped((operation) => {
    const heap = javaHeap();
    if (operation === "meta") return facts(heap, { step: "computing", heap: of(heap, { number: 2, dumps: 3 }) });
  });
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
  const { page, asked } = await openStopped((operation) => {
    if (operation === "meta") return facts(heap, { step: isCompared ? "" : "comparing", generation: number, heap: of(heap, { number, dumps: 3 }), before: isCompared ? heap.store["meta?"].before : null });
    if (operation === "show") return { json: {} };
  }, { heap });
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
  const { page, asked } = await openStopped((operation) => {
    const heap = javaHeap();
    if (operation === "meta") return facts(heap, { step: "computing", heap: of(heap, { number: 2, dumps: 3 }) });
    if (operation === "show") return { status: 400, json: { error: "no such dump" } };
  }, { hash: "#/classes" });
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
  const { page, asked } = await openStopped((operation, query) => {
    const heap = javaHeap();
    if (operation === "meta") return facts(heap, { generation, heap: of(heap, { number: generation, dumps: 3 }) });
    if (query.get("generation") !== String(generation)) return { status: 409, json: { error: "another heap" } };
  }, { hash: "#/classes" });
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
  const { page, asked } = await openStopped((operation) => {
    if (operation !== "meta") return undefined;
    if (fails-- > 0) return "abort";
    return facts(javaHeap(), { heap: null, error: null, idle_seconds: 3 });
  });
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
  const { page, asked } = await openStopped((operation) => (operation === "meta" ? facts(javaHeap(), { idle_seconds: 1.5 }) : undefined));
  await shown(page, "Largest classes");
  const before = counted(asked);
  await until(page, () => counted(asked) >= before + 2, 500, 5000);
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
  await isAsked(page, () => isWaiting);
  await page.click("th >> text=Shallow");
  await page.waitForSelector(".explored[aria-busy]");
  await answered(page);
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
    await isAsked(page, () => answers.length >= count);
  };
  await page.waitForSelector("textarea");
  await asks(1);
  await page.click(".explored >> text=Run");
  await asks(2);
  answers[0]({ status: 400, json: { error: "a later statement was run" } });
  await answered(page);
  assert.match(await page.textContent(".explored"), /Running/);
  await page.click(".explored >> text=Run");
  await asks(3);
  answers[2]({ json: { columns: ["one"], rows: [[1]], is_cut: false } });
  await shown(page, "1 row");
  answers[1]({ status: 400, json: { error: "a later statement was run" } });
  await answered(page);
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
  await shown(page, "No waste found");
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
  await isAsked(page, () => answer);
  await page.locator("input[type=search]").pressSequentially(".Item");
  await page.waitForURL(/filter=deadbeef\.Item$/);
  answer();
  await answered(page);
  assert.match(page.url(), /filter=deadbeef\.Item$/);
  assert.equal(await page.evaluate(() => document.activeElement.type), "search");
  assert.ok(asked.some((each) => each.filter === "deadbeef.Item"));
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
