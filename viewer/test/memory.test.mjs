// Memory over time: drawn lines and gaps, values at a time by mouse and keyboard, dumps, and access for
// screen readers.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { browser, inApp, look, settled } from "./browser.mjs";
import { game, timeline } from "./samples.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let chromium;
before(async () => {
  chromium = await browser();
});
after(() => chromium.close());

const open = (more) => chromium.open(game({ timeline: timeline(), ...more }));
const glass = (page) => page.locator(".glass");
const spoken = (page) => glass(page).getAttribute("aria-valuetext");
const clean = (page) => {
  assert.deepEqual(page.told.errors, []);
  assert.deepEqual(page.told.console, []);
};

/** Points at a moment. */
async function point(page, ms) {
  const box = await glass(page).boundingBox();
  const x = await inApp(page, (app, [ms, width]) => app.memories[0].axis.x(ms, width), [ms, box.width]);
  await page.mouse.move(box.x + x, box.y + 40);
  return [box.x + x, box.y + 40];
}

/** Legend entries of a lane: name to value. */
const values = (page, title) =>
  page.evaluate((title) => {
    const lane = [...document.querySelectorAll(".lane")].find((each) => each.querySelector(".lane-title b").textContent === title);
    return Object.fromEntries([...lane.querySelectorAll("li")].filter((li) => li.querySelector("b")).map((li) => [li.querySelector("b").previousSibling.previousSibling.textContent, li.querySelector("b").textContent]));
  }, title);

test("31: a page without memory over time has no lanes", async () => {
  const page = await chromium.open(game());
  assert.equal(await page.locator(".memory").count(), 0);
  clean(page);
  await page.close();
});

test("31b: no line crosses a gap or a restart, and every reading is on one", async () => {
  const { labels } = timeline();
  const page = await open({ timeline: timeline({ labels: [{ ...labels[0], ms: 990, text: "before" }, ...labels] }) });
  const lines = await page.evaluate(() => [...document.querySelectorAll(".lane-picture .line.s-rss")].map((line) => line.getAttribute("points").split(" ").length));
  assert.deepEqual(lines, [4, 2, 2]);
  const marks = await page.evaluate(() => [...document.querySelectorAll(".gc")].map((mark) => mark.classList.contains("ours")));
  assert.deepEqual(marks, [false, true, false]);
  assert.equal(await page.locator(".rules .dump").count(), 3);
  // A label that has a dump has no rule of its own.
  assert.equal(await page.locator(".rules .label").count(), 1);
  assert.equal(await page.locator(".rules .restart").count(), 2);
  // A negative share of shared pages does not create an area below the floor.
  const lowest = await page.evaluate(() => {
    const picture = document.querySelector(".lane-picture");
    const ys = [...picture.querySelectorAll("polygon.area")].flatMap((area) => area.getAttribute("points").split(" ").map((point) => Number(point.split(",")[1])));
    return [Math.max(...ys), Number(picture.querySelector(".floor").getAttribute("y1")), ys.every(Number.isFinite)];
  });
  assert.ok(lowest[2] && lowest[0] <= lowest[1] + 0.1, String(lowest));
  clean(page);
  await page.close();
});

test("31c: the cross-hair shows all values at a time, and none without readings", async () => {
  const page = await open();
  await point(page, 1600);
  assert.deepEqual(await values(page, "By kind"), {
    Java: "11.0 MiB",
    Native: "40.0 MiB",
    Code: "20.0 MiB",
    Stack: "1.0 MiB",
    Graphics: "15.0 MiB",
    "Private Other": "5.0 MiB",
    System: "3.0 MiB",
  });
  assert.equal((await values(page, "Total")).PSS, "95.0 MiB");
  assert.equal((await values(page, "Java heap"))["live set after a collection"], "8.0 MiB");
  const held = "unreleased, estimated";
  assert.match((await values(page, "Native heap"))[held], /iB$/);
  await point(page, 600);
  assert.equal((await values(page, "Native heap"))[held], "–", "before the first dump");
  assert.match((await values(page, "Total")).RSS, /iB$/);
  await point(page, 2700);
  assert.equal((await values(page, "Total")).RSS, "–");
  await point(page, 1900);
  assert.match(await page.locator(".event").textContent(), /Collection: Explicit, young concurrent copying; freed 0 B; live set 9\.0 MiB of 16\.0 MiB; longest pause 1\.2 ms; took 90\.0 ms; caused by heaptap/);
  await point(page, 2400);
  assert.match(await page.locator(".event").textContent(), /Label tap<U\+202E><\/script>/);
  await point(page, 5500);
  assert.match(await page.locator(".moment").textContent(), /process 5050/);
  clean(page);
  await page.close();
});

test("31d: a click on a line shows its dump, and the memory by kind at that time", async () => {
  const page = await open();
  const [x, y] = await point(page, 1000);
  await page.mouse.click(x, y);
  await settled(page);
  assert.equal(await inApp(page, (app) => app.state.dump), 0);
  const card = page.locator(".card.where");
  assert.match(await card.textContent(), /84\.0 MiB PSS including swapped memory at before/);
  assert.match(await card.textContent(), /native 30\.0 MiB/);
  await look(page, { dump: 2 });
  assert.match(await card.textContent(), /115\.0 MiB|412\.\d MiB|411\.8 MiB/);
  clean(page);
  await page.close();
});

test("31d2: a label has the figures of its capture, not of the nearest reading", async () => {
  // The dump is at 1000 ms; its capture is at 1600 ms, and another reading at 600 ms is nearer.
  const captures = [{ ms: 1600, until_ms: null, pid: 4242, text: "before" }];
  const page = await open({ timeline: timeline({ captures }) });
  const [x, y] = await point(page, 1000);
  assert.equal((await values(page, "By kind")).Native, "40.0 MiB");
  assert.equal((await values(page, "Total")).PSS, "95.0 MiB");
  assert.match(await page.locator(".event").textContent(), /Memory by kind captured 600 ms after it/);
  await page.mouse.click(x, y);
  await settled(page);
  assert.match(await page.locator(".card.where").textContent(), /95\.0 MiB PSS including swapped memory at before, captured 600 ms after it/);
  await point(page, 700);
  assert.equal((await values(page, "By kind")).Native, "30.0 MiB");
  clean(page);
  await page.close();
});

test("31e: a drag zooms in, the dumps above follow, and 0 shows the whole recording", async () => {
  const page = await open();
  const dots = () => page.evaluate(() => [...document.querySelectorAll(".strip .dot")].map((dot) => Math.round(parseFloat(dot.style.left))));
  const first = await dots();
  const [x, y] = await point(page, 900);
  await page.mouse.down();
  await point(page, 1500);
  const [to] = await point(page, 2100);
  await page.mouse.up();
  assert.ok(to > x && y > 0);
  const [from, end] = await inApp(page, (app) => [app.memories[0].axis.from, app.memories[0].axis.to]);
  assert.ok(Math.abs(from - 900) < 30 && Math.abs(end - 2100) < 30, `${from} ${end}`);
  assert.notDeepEqual(await dots(), first);
  await glass(page).focus();
  await page.keyboard.press("0");
  assert.deepEqual(await dots(), first);
  clean(page);
  await page.close();
});

test("31f: with the keyboard alone: readings, events, a time range, a dump", async () => {
  const page = await open();
  await glass(page).focus();
  await page.keyboard.press("Home");
  assert.match(await spoken(page), /^\+0 ms; .*RSS 100\.5 MiB/);
  await page.keyboard.press("ArrowRight");
  assert.match(await spoken(page), /Native 30\.0 MiB|Java 10\.0 MiB/);
  await page.keyboard.press("PageDown");
  assert.match(await spoken(page), /Collection: Background/);
  await page.keyboard.press("PageDown");
  assert.match(await spoken(page), /Dump before: .* unreleased/);
  await page.keyboard.press("Shift+PageDown");
  assert.match(await spoken(page), /selected range \d+ ms/);
  await page.keyboard.press("Enter");
  assert.ok(await inApp(page, (app) => app.memories[0].axis.zoomed));
  await page.keyboard.press("Escape");
  assert.ok(!(await inApp(page, (app) => app.memories[0].axis.zoomed)));
  await page.keyboard.press("+");
  assert.ok(await inApp(page, (app) => app.memories[0].axis.zoomed));
  await page.keyboard.press("-");
  await page.keyboard.press("Home");
  await page.keyboard.press("Enter");
  await settled(page);
  assert.equal(await inApp(page, (app) => app.state.dump), 0);
  clean(page);
  await page.close();
});

test("31g: the readings as a table, one row each", async () => {
  const page = await open();
  await page.locator(".readings summary").click();
  await page.locator(".readings tbody tr").first().waitFor();
  const table = await page.evaluate(() => [...document.querySelectorAll(".readings tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent)));
  // 8 of RSS, 3 of the parts, 3 collections, 3 dumps, a label, an end.
  assert.equal(table.length, 19);
  assert.deepEqual(table.find((row) => row[0] === "+0.100 s").slice(1, 8), ["4242", "meminfo-local", "84.0 MiB", "", "", "10.0 MiB", "30.0 MiB"]);
  assert.ok(table.some((row) => row[2] === "process ended"));
  clean(page);
  await page.close();
});

for (const scheme of ["light", "dark"]) {
  test(`31h: axe finds nothing, ${scheme}`, async () => {
    const page = await open();
    await page.emulateMedia({ colorScheme: scheme });
    await page.locator(".readings summary").click();
  await page.locator(".readings tbody tr").first().waitFor();
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run("#heaptap-app"));
    assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(" ")}`), []);
    await page.close();
  });
}

test("31i: nothing is wider than a narrow screen", async () => {
  const phone = await browser({ viewport: { width: 390, height: 844 }, isMobile: true });
  const page = await phone.open(game({ timeline: timeline() }));
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await phone.close();
});

test("31j: unusual readings work: none of a kind, a single one, the whole device", async () => {
  const nothing = { ms: [], source: [], breaks: [], columns: {} };
  const life = { pid: 7, process: "", restarted: false, from_ms: 5, to_ms: 5, gone_ms: null, resident: nothing, parts: nothing, graphics: nothing, java_heap: nothing, collections: nothing };
  const alone = { ms: [5], source: [0], breaks: [], columns: { java: [1], native: [0], code: [0], stack: [0], graphics: [0], private_other: [0], system: [-1], total_pss: [0] } };
  for (const processes of [[life], [{ ...life, parts: alone }], [{ ...life, pid: 4242, parts: alone }]]) {
    const page = await open({ timeline: timeline({ from_ms: 5, to_ms: 5, processes, labels: [], ours: [], unread: [] }) });
    await glass(page).focus();
    for (const key of ["ArrowRight", "ArrowLeft", "PageDown", "Home", "End", "+", "-", "0", "Enter", "Escape"]) await page.keyboard.press(key);
    clean(page);
    await page.close();
  }
});

/** Two recordings of processes with the same id, each on its own clock. */
function two() {
  const later = timeline();
  for (const life of later.processes) life.resident.columns.rss = life.resident.columns.rss.map((rss) => 2 * rss);
  return game({
    timeline: null,
    timelines: [
      { name: "before<b>\u202e", from: 0, to: 2, timeline: timeline() },
      { name: "after", from: 2, to: 4, timeline: later },
    ],
  });
}

const unfolded = (page) => page.evaluate(() => [...document.querySelectorAll(".memory")].map((each) => each.open));
const ruled = (page) => page.evaluate(() => [...document.querySelectorAll(".memory")].map((each) => each.querySelectorAll(".rules .dump").length));

test("31k: each of two recordings has its own panel, and that of the shown dump is unfolded", async () => {
  const page = await chromium.open(two());
  assert.deepEqual(await page.locator(".memory > summary").allTextContents(), ["Memory over time of before<b><U+202E>", "Memory over time of after"]);
  assert.deepEqual(await unfolded(page), [false, true], "it opens on the last dump");
  await page.waitForFunction(() => document.querySelectorAll(".memory[open] .rules .dump").length === 1);
  await look(page, { dump: 0 });
  assert.deepEqual(await unfolded(page), [true, true]);
  // Dumps of the other have the same process, and are not in it.
  await page.waitForFunction(() => document.querySelectorAll(".memory .rules .dump").length === 3);
  assert.deepEqual(await ruled(page), [2, 1]);
  const rss = await inApp(page, (app) => app.memories.map(({ lanes }) => lanes[1].lines.find(({ key }) => key === "resident.rss").at(1000)));
  assert.equal(rss[1], 2 * rss[0]);
  // The timeline has the axis of the recording of its dumps.
  const first = await inApp(page, (app) => [app.memories[0].axis.x(1000, document.querySelector(".strip").clientWidth), parseFloat(document.querySelector(".strip .dot.here").style.left)]);
  assert.ok(Math.abs(first[0] - first[1]) < 1, String(first));
  await page.locator(".memory > summary").nth(1).click();
  await look(page, { dump: 1 });
  assert.deepEqual(await unfolded(page), [true, false], "a folded panel stays folded while the other one is shown");
  await look(page, { dump: 2 });
  assert.deepEqual(await unfolded(page), [true, true]);
  assert.match(await page.locator(".card.where").textContent(), /MiB/);
  for (const summary of await page.locator(".readings > summary").all()) await summary.click();
  await page.waitForFunction(() => document.querySelectorAll(".readings tbody tr").length > 20);
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run("#heaptap-app"));
  assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(" ")}`), []);
  clean(page);
  await page.close();
});

/** Returns whether names in one row overlap. */
const overlapping = (page, selector) =>
  page.evaluate((selector) => {
    const boxes = [...document.querySelectorAll(selector)].map((each) => each.getBoundingClientRect()).sort((a, b) => a.left - b.left);
    return boxes.some((box, i) => i > 0 && box.left < boxes[i - 1].right - 0.5);
  }, selector);

test("31l: names are at the dumps above, otherwise over the lanes, and a click on one shows its dump", async () => {
  for (const width of [400, 1280]) {
    const chosen = await browser({ viewport: { width, height: 900 } });
    // The label of the sample has no dump.
    const page = await chosen.open(game({ timeline: timeline() }));
    assert.deepEqual(await page.locator(".moments .mark").allTextContents(), ["tap<U+202E></script>"]);
    assert.equal(await overlapping(page, ".strip .mark"), false);
    const mark = await page.locator(".strip .mark", { hasText: "before" }).boundingBox();
    await page.mouse.click(mark.x + mark.width / 2, mark.y + mark.height / 2);
    await settled(page);
    assert.equal(await inApp(page, (app) => app.state.dump), 0);
    await page.close();
    // Dumps of another recording are not on the timeline above.
    const both = await chosen.open(two());
    await both.locator(".memory > summary").first().click();
    const leads = both.locator(".memory").first().locator(".moments .leads");
    await leads.first().waitFor();
    assert.equal(await overlapping(both, ".memory:first-of-type .moments .mark"), false);
    await leads.first().click();
    await settled(both);
    assert.equal(await inApp(both, (app) => app.state.dump), 0);
    clean(both);
    await chosen.close();
  }
});

test("31m: memory by kind is that of the shown recording", async () => {
  const page = await chromium.open(two());
  const words = (of) => of.locator(".card.where").textContent();
  await look(page, { dump: 0 });
  assert.match(await words(page), /84\.0 MiB PSS including swapped memory at before/);
  await page.close();
  // Nothing was read in the first: the figures of the page are of the second.
  const bare = game({ timeline: null, timelines: [{ name: "after", from: 2, to: 4, timeline: timeline() }], where: { total: 431816704, of: "PSS", at: "end", parts: [{ name: "native", bytes: 7, how: "" }] } });
  const other = await chromium.open(bare);
  assert.match(await words(other), /411\.8 MiB PSS at end/);
  await look(other, { dump: 1 });
  assert.doesNotMatch(await words(other), /PSS/);
  clean(other);
  await other.close();
});
