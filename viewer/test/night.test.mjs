// index.html of `heaptap run` on several devices, as Jenkins serves it: without scripts, inline style
// or pictures from elsewhere. HEAPTAP is the path of the program; without it, these tests are
// skipped. With NIGHT_PICTURES, screenshots go into that directory.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { after, before, test } from "node:test";
import { browser } from "./browser.mjs";

const HEAPTAP = process.env.HEAPTAP ?? "";
const skip = existsSync(HEAPTAP) ? false : "HEAPTAP is not the path of a program";
const JENKINS = "sandbox allow-same-origin; default-src 'none'; img-src 'self'; style-src 'self';";
const TYPES = { ".html": "text/html", ".css": "text/css", ".svg": "image/svg+xml" };
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const DEVICES = 3;
const scenario = (name, more) => `version: 1\nname: ${name}\ntarget: {name: com.example.app}\n${more}`;
const SCENARIOS = {
  login: "measure: [native, java]\nrepeats: 3\nsteps: [start, snapshot: up]\nbudgets:\n"
    + "- {name: native, native: {}, at: up, limit: 1GiB}\n"
    + "- {name: details, java: {class: '*.DetailActivity', measure: instances}, at: up, limit: 0}\n",
  broken: "repeats: 1\nsteps:\n- start\n- shell: [sh, -c, 'echo \"<script>globalThis.owned = 1</script>\" >&2; exit 1']\n"
    + "budgets:\n- {name: native, native: {}, limit: 1GiB}\n",
};

let folder;
let results;
let server;
let policy = JENKINS;

before(() => {
  if (skip) return;
  folder = mkdtempSync(join(tmpdir(), "heaptap-night-"));
  for (const [name, more] of Object.entries(SCENARIOS)) writeFileSync(join(folder, `${name}.yaml`), scenario(name, more));
  const files = Object.keys(SCENARIOS).map((name) => `${name}.yaml`);
  const environment = { ...process.env, HEAPTAP_STATE_DIR: join(folder, "state"), HEAPTAP_CACHE_DIR: join(folder, "cache") };
  const phones = `--virtual=speed=8,build=userdebug,devices=${DEVICES}`;
  const ran = spawnSync(HEAPTAP, ["run", ...files, phones, "--all-devices", "-o", "night"], { cwd: folder, env: environment, encoding: "utf8" });
  // Over wins over the failed steps.
  assert.equal(ran.status, 9, ran.stderr);
  results = JSON.parse(readFileSync(join(folder, "night", "result.json"), "utf8"));
  server = createServer((request, response) => {
    const file = join(folder, "night", normalize(decodeURIComponent(new URL(request.url, "http://x").pathname)));
    if (!existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, { "Content-Type": TYPES[extname(file)] ?? "text/plain", "Content-Security-Policy": policy }).end(readFileSync(file));
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
});
after(() => {
  server?.close();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

const address = () => `http://127.0.0.1:${server.address().port}/index.html`;

/** Opens the page, and calls `look` with it and what it complained about. */
async function look(options, look) {
  const chromium = await browser(options);
  try {
    const page = await chromium.context.newPage();
    const told = [];
    // Chromium asks every server for the icon of a site.
    page.on("console", (message) => !message.location().url.endsWith("/favicon.ico") && told.push(message.text()));
    page.on("pageerror", (error) => told.push(String(error)));
    page.on("response", (response) => response.ok() || response.url().endsWith("/favicon.ico") || told.push(`${response.status()} ${response.url()}`));
    await page.goto(address());
    await look(page, told);
  } finally {
    await chromium.close();
  }
}

/** What is visible: the text of each row of each table, and the links. */
const read = async (page) => ({
  rows: await page.locator("tbody tr").evaluateAll((rows) => rows.filter((row) => row.checkVisibility()).map((row) => row.innerText)),
  links: await page.locator("a").evaluateAll((links) => links.map((link) => link.href)),
  style: await page.locator("th").first().evaluate((cell) => getComputedStyle(cell).borderTopStyle),
});

for (const [name, options] of [["with scripts", {}], ["without scripts", { javaScriptEnabled: false }]]) {
  test(`index.html ${name} shows all devices, scenarios and budgets`, { skip }, async () => {
    await look(options, async (page, told) => {
      const { rows, links, style } = await read(page);
      const budgets = results.flatMap((result) => result.budgets);
      assert.equal(results.length, DEVICES * Object.keys(SCENARIOS).length);
      assert.equal(rows.length, DEVICES + budgets.length);
      for (const { device } of results) assert.ok(rows.some((row) => row.includes(device.serial)), device.serial);
      assert.equal(rows.filter((row) => /\bover\b/.test(row) && row.includes("details")).length, DEVICES);
      assert.equal(style, "solid", "the style sheet is in force");
      const pages = readdirSync(join(folder, "night"), { recursive: true }).filter((file) => /-run-\d+\.html$/.test(file));
      assert.ok(pages.length >= results.flatMap((result) => result.runs).filter((run) => run.state === "done").length);
      assert.equal(new Set(links).size, pages.length, "a link to each page of a run");
      for (const link of new Set(links)) {
        const response = await page.request.get(link);
        assert.ok(response.ok() && /^<!doctype html>/i.test(await response.text()), link);
      }
      assert.deepEqual(told, []);
      await page.locator("a").first().click();
      await page.waitForURL(links[0]);
    });
  });
}

test("index.html without a policy runs no text of a device", { skip }, async () => {
  policy = "";
  try {
    await look({}, async (page, told) => {
      assert.match(await page.locator("body").innerText(), /<script>globalThis\.owned = 1<\/script>/);
      assert.equal(await page.evaluate(() => globalThis.owned), undefined);
      assert.deepEqual(told, []);
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => globalThis.axe.run());
      assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`), []);
    });
  } finally {
    policy = JENKINS;
  }
});

for (const [name, options] of [
  ["desktop", { viewport: { width: 1280, height: 900 } }],
  ["dark", { viewport: { width: 1280, height: 900 }, colorScheme: "dark" }],
  ["phone", { viewport: { width: 390, height: 844 }, isMobile: true }],
]) {
  test(`index.html fits the width: ${name}`, { skip }, async () => {
    await look(options, async (page) => {
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(width <= options.viewport.width, `${width} px`);
      if (process.env.NIGHT_PICTURES) await page.screenshot({ path: join(process.env.NIGHT_PICTURES, `${name}.png`), fullPage: true });
      // A class with a long name breaks, so that no table needs to be scrolled.
      const tables = page.locator(".wide");
      await tables.locator("td.names").evaluateAll((cells) => cells.forEach((cell) => (cell.textContent = "com.example.app.checkout.ConfirmationActivity$PendingResult")));
      const over = await tables.evaluateAll((all) => all.map((each) => each.scrollWidth - each.clientWidth));
      if (name !== "phone") assert.deepEqual(over.filter((px) => px > 0), []);
    });
  });
}
