// The heap explorer: `heaptap explore` on HPROFs of the fixtures, in Chromium. HEAPTAP is the path of the
// program; without it, these tests are skipped.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { browser } from "./browser.mjs";

const HEAPTAP = resolve(process.env.HEAPTAP ?? "");
const skip = process.env.HEAPTAP && existsSync(HEAPTAP) ? false : "HEAPTAP is not the path of a program";
const fixtures = join(dirname(fileURLToPath(import.meta.url)), "../../fixtures");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let chromium;
let folder;
const children = [];
before(async () => {
  chromium = await browser();
  folder = mkdtempSync(join(tmpdir(), "heaptap-explore-"));
});
after(async () => {
  for (const child of children) child.kill();
  await chromium.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Starts the explorer and opens its page. */
async function explore(input, ...more) {
  const env = { ...process.env, HEAPTAP_STATE_DIR: join(folder, "state"), HEAPTAP_CACHE_DIR: join(folder, "cache") };
  const child = spawn(HEAPTAP, ["explore", join(fixtures, input), "--print-url", ...more], { env, stdio: ["ignore", "pipe", "ignore"] });
  children.push(child);
  const url = await new Promise((found) => child.stdout.once("data", (data) => found(String(data).trim())));
  const page = await chromium.context.newPage();
  page.told = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) page.told.push(message.text());
  });
  page.on("pageerror", (error) => page.told.push(String(error)));
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => console.error(`${event.violatedDirective} ${event.blockedURI}`));
  });
  await page.goto(url);
  await shown(page, "Largest classes");
  return { page, url, child };
}

/** Waits until a view with that text is complete. */
async function shown(page, text) {
  await page.waitForFunction((text) => {
    const main = document.querySelector("main");
    return main && !main.hasAttribute("aria-busy") && main.textContent.includes(text);
  }, text);
}

test("a heap is walked from its classes to one object, its path and what it dominates", { skip }, async () => {
  const { page } = await explore("hprof/leaklab-after.hprof.zst");
  await page.click("nav.tabs >> text=Classes");
  await shown(page, "Retained");
  await page.click("main nav.choices >> text=Packages");
  await shown(page, "lab");
  assert.match(page.url(), /#\/classes\?by=package$/);
  await page.goBack();
  await shown(page, "java.lang.String");
  await page.fill("input[type=search]", "lab.LeakLab$Listener");
  await shown(page, "1 row");
  await page.click("main tbody a >> text=lab.LeakLab$Listener");
  await shown(page, "180 objects");
  await page.click("main tbody a >> nth=0");
  await shown(page, "Shortest path from a GC root");
  assert.match(await page.textContent("ol.path"), /lab\.LeakLab\.REGISTRY → java\.util\.ArrayList/);
  assert.match(await page.textContent("main"), /Referrers \(1\)/);
  await page.click("ol.path >> text=java.util.ArrayList");
  await shown(page, "elementData");
  await page.click("main dl >> text=361 objects");
  await shown(page, "Object[]");
  assert.ok((await page.locator(".treemap .cell").count()) > 100);
  // The rectangles in a rectangle are inside of it.
  const inside = await page.evaluate(() => {
    const boxes = [...document.querySelectorAll(".treemap .cell")].map((cell) => cell.getBoundingClientRect());
    const map = document.querySelector(".treemap").getBoundingClientRect();
    return boxes.every((box) => box.left >= map.left - 1 && box.right <= map.right + 1 && box.top >= map.top - 1 && box.bottom <= map.bottom + 1);
  });
  assert.ok(inside);
  const before = page.url();
  await page.locator(".treemap .cell").first().focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction((before) => location.href !== before, before);
  assert.deepEqual(page.told, []);
});

test("an ID opens its object, and one that is not there has a reason", { skip }, async () => {
  const { page, url } = await explore("hprof/android-a.hprof.gz");
  await page.keyboard.press("/");
  const id = await page.textContent("main section:nth-of-type(4) tbody tr code");
  await page.keyboard.type(id);
  await page.keyboard.press("Enter");
  await shown(page, "Fields");
  assert.match(await page.textContent("main h2"), new RegExp(id));
  await page.goto(`${url}#/object/0x1`);
  await page.waitForSelector("[role=alert]");
  assert.match(await page.textContent("[role=alert]"), /does not contain object 0x1/);
  await page.click("nav.tabs >> text=Overview");
  await shown(page, "Largest classes");
  // The browser reports the answer 404 itself.
  assert.deepEqual(page.told.filter((text) => !text.includes("404")), []);
});

test("it is accessible, light and dark, wide and narrow", { skip }, async () => {
  const { page, url } = await explore("hprof/leaklab-after.hprof.zst");
  const views = ["overview", "leaks", "classes", "objects", "dominators", "waste", "object/0xfc070958"];
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [1400, 400]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      for (const view of views) {
        await page.goto(`${url}#/${view}`);
        if (view === "overview" || view === "leaks") await page.waitForSelector(".leaks");
        if (view !== "leaks") await shown(page, view === "waste" ? "could be saved" : "Retained");
        await page.evaluate(axe);
        const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
        const violations = found.violations.map((each) => `${each.id}: ${each.nodes[0].html}`);
        assert.deepEqual(violations, [], `${view}, ${colorScheme}, ${width} px`);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert.ok(overflow <= 0, `${view} is ${overflow} px too wide at ${width} px`);
      }
    }
  }
});

test("a leak comes first, with its path and its fix", { skip }, async () => {
  const { page } = await explore("hprof/android-a.hprof.gz");
  await page.click("nav.tabs >> text=Leaks");
  await page.waitForSelector(".leaks article");
  assert.match(await page.textContent(".leaks article h3"), /destroyed Activity: com\.example\.app\.MainActivity/);
  assert.ok((await page.locator(".leaks article:first-of-type .suspect").count()) > 0);
  await page.click(".leaks article:first-of-type ol.path li:last-child a");
  await shown(page, "Fields");
  await page.click("nav.tabs >> text=Waste");
  await shown(page, "could be saved");
  assert.deepEqual(page.told, []);
});

test("hidden contents are not on the page, and its end is told", { skip }, async () => {
  const { page, url, child } = await explore("hprof/leaklab-after.hprof.zst", "--redact");
  await page.goto(`${url}#/objects?class=java.lang.String`);
  await shown(page, "java.lang.String");
  assert.equal(await page.locator("main q").count(), 0);
  child.kill();
  await new Promise((ended) => child.once("exit", ended));
  await page.click("nav.tabs >> text=Classes");
  await page.waitForSelector("[role=alert]");
});
