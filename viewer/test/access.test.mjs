// Accessibility: keyboard only, screen readers, dark mode, forced colors, print, narrow screens, and pages
// without scripts.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { browser, inApp, look, settled } from "./browser.mjs";
import { game } from "./samples.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let chromium;
before(async () => {
  chromium = await browser();
});
after(() => chromium.close());

const selected = (page) => inApp(page, (app) => app.selected && app.scene.keys.label(app.selected.key));
const press = async (page, ...keys) => {
  for (const key of keys) {
    await page.keyboard.press(key);
    await page.waitForTimeout(30);
    await settled(page);
  }
};

test("26: everything can be done with the keyboard alone", async () => {
  const page = await chromium.open(game());
  // Tab reaches the graph, and every focused element has an outline.
  const focused = () => page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent);
  let reached = false;
  for (let i = 0; i < 60 && !reached; i++) {
    await page.keyboard.press("Tab");
    reached = (await focused()).startsWith("Flame graph, ");
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.notEqual(outline, "none", `${await focused()} shows its focus`);
  }
  assert.ok(reached);
  await press(page, "ArrowDown");
  assert.equal(await selected(page), "main");
  await press(page, "ArrowDown", "ArrowDown");
  assert.equal(await selected(page), "SkImage::decode(unsigned char[])");
  await press(page, "ArrowRight");
  assert.equal(await selected(page), "Level::load(std::string const&)");
  await press(page, "ArrowUp");
  assert.equal(await selected(page), "Game::loop()");
  // A screen reader reads the row of the box.
  const row = await page.evaluate(() => {
    const active = document.activeElement.getAttribute("aria-activedescendant");
    const element = document.getElementById(active);
    return [element.textContent, element.getAttribute("aria-level"), element.getAttribute("aria-setsize")];
  });
  assert.match(row[0], /^Game::loop\(\): .*KiB|MiB/);
  assert.equal(row[1], "3");
  await press(page, "Enter");
  assert.equal(await inApp(page, (app) => app.scene.keys.label(app.zoomed.key)), "Game::loop()");
  await press(page, "Escape");
  assert.equal(await inApp(page, (app) => app.scene.keys.label(app.zoomed.key)), "main");
  await press(page, "0");
  assert.equal(await inApp(page, (app) => app.zoomed.key), -1);
  await press(page, "/");
  await page.keyboard.type("decode");
  await settled(page);
  await press(page, "Enter");
  assert.match(await selected(page), /decode/);
  await press(page, "Escape");
  assert.equal((await inApp(page, (app) => app.state)).search, "");
  await press(page, "b");
  assert.equal((await inApp(page, (app) => app.state)).view, "bottom-up");
  await press(page, "b", "ArrowDown", "m");
  assert.deepEqual((await inApp(page, (app) => app.state)).filters, ["HF: /^main$/"]);
  await press(page, "u", "[");
  assert.equal((await inApp(page, (app) => app.state)).dump, 1);
  await press(page, "}");
  assert.deepEqual(await inApp(page, (app) => [app.state.dump, app.state.base]), [2, 1]);
  // The timeline has keys of its own.
  await page.locator(".dot.here").focus();
  await press(page, "Home");
  assert.deepEqual(await inApp(page, (app) => [app.state.dump, app.state.base]), [0, null]);
  await press(page, "Shift+ArrowRight");
  assert.deepEqual(await inApp(page, (app) => [app.state.dump, app.state.base]), [1, 0]);
  // Tabs, trees, tables.
  await page.locator("[role=tab][aria-selected=true]").focus();
  await press(page, "ArrowRight");
  assert.equal((await inApp(page, (app) => app.state)).tab, "tree");
  await page.locator("[role=treegrid]").focus();
  await press(page, "Home", "ArrowDown");
  assert.equal(await page.locator("tr[aria-selected=true]").getAttribute("aria-level"), "2");
  await press(page, "ArrowRight", "ArrowRight");
  assert.equal(await page.locator("tr[aria-selected=true]").getAttribute("aria-level"), "3");
  await press(page, "?");
  assert.equal(await page.locator("dialog").evaluate((dialog) => dialog.open), true);
  await press(page, "Escape");
  assert.equal(await page.locator("dialog").evaluate((dialog) => dialog.open), false);
  await page.close();
});

test("26b: with a mouse: a click zooms, a drag on the timeline compares", async () => {
  const page = await chromium.open(game());
  const at = await inApp(page, (app) => app.flame.positionOf(app.scene.tree.children(app.scene.tree.root)[0]));
  await page.mouse.move(at.x, at.y);
  assert.match(await page.locator(".tip").textContent(), /^main.*of total/);
  await page.mouse.click(at.x, at.y);
  await settled(page);
  assert.equal(await inApp(page, (app) => app.scene.keys.label(app.zoomed.key)), "main");
  await page.locator(".crumbs button").first().click();
  await settled(page);
  assert.equal(await inApp(page, (app) => app.zoomed.key), -1);
  const dots = page.locator(".dot");
  const [from, to] = [await dots.nth(0).boundingBox(), await dots.nth(2).boundingBox()];
  await page.mouse.move(to.x + 5, to.y + 5);
  await page.mouse.down();
  await page.mouse.move(from.x + 40, from.y, { steps: 4 });
  await page.mouse.move(from.x + 5, from.y + 5);
  await page.mouse.up();
  await settled(page);
  assert.deepEqual(await inApp(page, (app) => [app.state.dump, app.state.base]), [2, 0]);
  await dots.nth(1).click();
  await settled(page);
  assert.deepEqual(await inApp(page, (app) => [app.state.dump, app.state.base]), [1, null]);
  await page.close();
});

test("27: axe finds nothing on any page, light or dark", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const page = await chromium.open(game());
    await page.emulateMedia({ colorScheme });
    for (const patch of [
      ...(await inApp(page, (app) => app.tabs)).map((tab) => ({ tab })),
      { tab: "flame", filters: ["SS: decode", "HF: /(/"], search: "decode" },
      { tab: "tree", dump: 2, base: 0, filters: [], search: "" },
      { tab: "changes" },
    ]) {
      await look(page, patch);
      await page.waitForTimeout(50);
      await page.evaluate(axe);
      const found = await page.evaluate(() =>
        globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }),
      );
      const words = found.violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html, failureSummary }) => `${html.slice(0, 140)} ${failureSummary.slice(0, 200)}`).join(" | ")}`);
      assert.deepEqual(words, [], `${colorScheme} ${JSON.stringify(patch)}`);
    }
    await page.close();
  }
});

/** Share of a picture's pixels by rough brightness: 0 dark, 1 light. */
async function brightness(page) {
  const png = (await page.screenshot()).toString("base64");
  return page.evaluate(async (png) => {
    const image = new Image();
    image.src = `data:image/png;base64,${png}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 64;
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0, 64, 64);
    const { data } = context.getImageData(0, 0, 64, 64);
    let sum = 0;
    for (let i = 0; i < data.length; i += 4) sum += data[i] + data[i + 1] + data[i + 2];
    return sum / (64 * 64 * 3 * 255);
  }, png);
}

test("28: dark mode, forced colors, reduced motion", async () => {
  const page = await chromium.open(game());
  await page.emulateMedia({ colorScheme: "light" });
  await page.waitForTimeout(50);
  assert.ok((await brightness(page)) > 0.8);
  await page.emulateMedia({ colorScheme: "dark" });
  await page.waitForTimeout(50);
  assert.ok((await brightness(page)) < 0.3, "the graph is dark too");
  const theme = page.locator("button[aria-label^=Colors]");
  await theme.click();
  assert.equal(await theme.getAttribute("aria-label"), "Colors: light");
  await page.waitForTimeout(50);
  assert.ok((await brightness(page)) > 0.8, "the page's choice wins");
  await page.reload();
  await page.waitForFunction(() => document.querySelector("#heaptap-app").dataset.ready);
  assert.equal(await theme.getAttribute("aria-label"), "Colors: light", "and is kept");
  await theme.click();
  await theme.click();
  assert.equal(await theme.getAttribute("aria-label"), "Colors: system");

  await page.emulateMedia({ forcedColors: "active", colorScheme: "light" });
  await page.waitForTimeout(50);
  // Boxes have edges in the system color instead of fills.
  const saturated = await page.locator(".flame canvas").evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let i = 0; i < data.length; i += 4) {
      const [r, g, b] = data.subarray(i, i + 3);
      if (Math.max(r, g, b) - Math.min(r, g, b) > 60) count += 1;
    }
    return count / (data.length / 4);
  });
  assert.ok(saturated < 0.02, `${saturated}`);
  await page.emulateMedia({ forcedColors: "none", reducedMotion: "reduce" });
  assert.equal(await page.locator(".toast").evaluate((toast) => getComputedStyle(toast).transitionProperty), "none");
  await page.close();
});

test("29: prints, and reads without scripts", async () => {
  const staticPart = "<h1>Summary</h1><p>libgame.so holds 12 MiB</p>";
  const page = await chromium.open(game(), { staticPart });
  assert.equal(await page.locator("#heaptap-static").isVisible(), false);
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  assert.equal(await page.locator("#heaptap-static").isVisible(), true);
  assert.equal(await page.locator(".tabs").isVisible(), false);
  const pdf = await page.pdf();
  assert.equal(pdf.subarray(0, 5).toString(), "%PDF-");
  assert.ok(pdf.length > 20_000, `${pdf.length} bytes: tables and the picture of the graph`);
  await page.close();

  const bare = await browser({ javaScriptEnabled: false });
  const still = await bare.open(game(), { staticPart, wait: false });
  assert.equal(await still.locator("#heaptap-static").isVisible(), true);
  assert.match(await still.locator("#heaptap-static").textContent(), /libgame\.so holds 12 MiB/);
  await bare.close();
});

test("29b: nothing is wider than a narrow screen", async () => {
  const phone = await browser({ viewport: { width: 360, height: 740 }, deviceScaleFactor: 3, hasTouch: true, isMobile: true });
  const page = await phone.open(game());
  for (const tab of await inApp(page, (app) => app.tabs)) {
    await look(page, { tab });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.equal(wide, 0, tab);
  }
  await phone.close();
});

test("29c: the popup stays within the page at any position of its button", async () => {
  for (const width of [320, 400, 620, 800]) {
    const narrow = await browser({ viewport: { width, height: 740 } });
    const page = await narrow.open(game());
    for (const tab of ["flame", "tree", "functions", "changes"]) {
      await look(page, { tab });
      await page.locator(".menu > summary").click();
      await page.waitForFunction(() => document.querySelector(".menu").open);
      // The event that moves it comes after it opened.
      await page.waitForFunction(() => document.querySelector(".popup").style.left !== "");
      const box = await page.locator(".popup").boundingBox();
      assert.ok(box.x >= 0 && box.x + box.width <= width, `${tab} at ${width}: ${box.x} to ${box.x + box.width}`);
      await page.locator(".menu > summary").click();
      await page.evaluate(() => (document.querySelector(".popup").style.left = ""));
    }
    await narrow.close();
  }
});

test("30c: unreadable data gives an error, and the static part stays", async () => {
  const staticPart = "<h1>Summary</h1>";
  const cut = game();
  cut.data = cut.data.subarray(0, cut.data.length - 700);
  const garbled = { data: Buffer.from("not a report at all") };
  const other = game();
  other.data = Buffer.from(other.data.toString("latin1").replace('"format":1', '"format":9'), "latin1");
  for (const [report, words] of [
    [cut, /^Cannot show the interactive view: /],
    [garbled, /the data is not a heaptap report/],
    [other, /format 9/],
  ]) {
    const page = await chromium.open(report, { staticPart, wait: false });
    await page.waitForSelector(".failed");
    assert.match(await page.locator(".failed").textContent(), words);
    assert.equal(await page.locator("#heaptap-static").isVisible(), true);
    await page.close();
  }
});
