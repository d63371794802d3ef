// Reports written by heaptap, of the demo recording of the virtual phone. HEAPTAP is the path of the
// program; without it, these tests are skipped.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { browser, inApp, look, wholeTree } from "./browser.mjs";
import { readPprof } from "./pprof.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const heaptap = process.env.HEAPTAP ?? "";
const skip = existsSync(heaptap) ? false : "HEAPTAP is not the path of a program: run cargo build, then HEAPTAP=../target/debug/heaptap npm test";

let chromium;
let folder;
const run = (...words) => execFileSync(heaptap, words, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

before(async () => {
  if (skip) return;
  folder = mkdtempSync(join(tmpdir(), "heaptap-demo-"));
  run("demo", "-o", "rec");
  run("report", "rec", "-o", "native.html");
  chromium = await browser();
});
after(async () => {
  await chromium?.close();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

const open = (name, more) => chromium.openFile(join(folder, name), more);

/** Returns the self value of each path of names. */
function selves(tree) {
  const sums = new Map();
  const walk = ([name, total, , children], path) => {
    const own = total - children.reduce((sum, child) => sum + child[1], 0);
    if (own !== 0) sums.set(path, (sums.get(path) ?? 0) + own);
    for (const child of children) walk(child, path ? `${path};${child[0]}` : child[0]);
    return name;
  };
  walk(tree, "");
  return Object.fromEntries([...sums].sort());
}

test("10: every stack of every dump has the values of its pprof, in every measure", { skip }, async () => {
  const page = await open("native.html");
  const dumps = await inApp(page, (app) => app.header.dumps.map(({ number, measures }) => ({ number, measures })));
  const files = readdirSync(join(folder, "rec")).filter((name) => /^heap_dump\..*\.pb\.gz$/.test(name));
  assert.equal(dumps.length, files.length);
  for (const [place, { number, measures }] of dumps.entries()) {
    const file = files.find((name) => name.startsWith(`heap_dump.${number}.`));
    const pprof = readPprof(readFileSync(join(folder, "rec", file)));
    assert.deepEqual(measures.map(({ name }) => name).sort(), pprof.types.slice().sort());
    for (const { name, total } of measures) {
      const type = pprof.types.indexOf(name);
      const sums = new Map();
      for (const { stack, values } of pprof.samples) {
        if (values[type] !== 0) sums.set(stack.join(";"), (sums.get(stack.join(";")) ?? 0) + values[type]);
      }
      assert.equal(total, [...sums.values()].reduce((sum, value) => sum + value, 0), `${file} ${name}`);
      await look(page, { dump: place, metric: name, allFrames: true, view: "top-down" });
      assert.deepEqual(selves(await wholeTree(page)), Object.fromEntries([...sums].sort()), `${file} ${name}`);
      await look(page, { view: "bottom-up" });
      const reversed = [...sums].map(([stack, value]) => [stack.split(";").reverse().join(";"), value]);
      assert.deepEqual(selves(await wholeTree(page)), Object.fromEntries(reversed.sort()), `${file} ${name} bottom-up`);
    }
  }
  await page.close();
});

/** The same up to rounding: the command line's limits are whole bytes. */
function close(got, wanted, what) {
  for (const end of ["low", "high"]) assert.ok(Math.abs(got[end] - wanted[end]) <= 1.5, `${what} ${end}: ${got[end]} ${wanted[end]}`);
}

test("10b: functions and their intervals are those of top --json", { skip }, async () => {
  const page = await open("native.html");
  for (const place of [0, 2]) {
    const top = JSON.parse(run("top", `rec@${place + 1}`, "--by", "function", "-l", "0", "--json"));
    const { rows, total, total_limits: limits } = top.heaps[0];
    await look(page, { tab: "functions", dump: place, metric: "space", allFrames: false, view: "bottom-up" });
    const listed = await inApp(page, (app) => app.functions.listed.map(({ label, library, self, total }) => [label, library, self, total]));
    const wanted = rows.map(({ name, library, self, cumulative }) => [name, library ?? "(no library)", self.space, cumulative.space]);
    const sorted = (list) => list.filter((row) => row[3] !== 0).map((row) => row.join("\u0000")).sort();
    // Frames without a library are called so in words of each side's own.
    const bare = (list) => sorted(list.map(([name, , self, cumulative]) => [name, "", self, cumulative]));
    assert.deepEqual(bare(listed), bare(wanted));
    // Bottom-up, the first row of boxes are functions with their self values.
    const ranges = await inApp(page, (app) => {
      const { tree } = app.scene;
      const figure = (cell) => app.stage.figure(app.scene, app.scene.measure, (column) => tree.sum(cell, column)).range;
      return { all: figure(tree.root), cells: tree.children(tree.root).map((cell) => [app.scene.keys.label(cell.key), figure(cell)]) };
    });
    assert.equal(ranges.all.value, total.space);
    close(ranges.all, limits, "all");
    const known = new Map(rows.map(({ name, self_limits: limits }) => [name, limits]));
    assert.ok(ranges.cells.length >= 3);
    for (const [name, range] of ranges.cells) close(range, known.get(name), name);
  }
  await page.close();
});

test("19c: growth and its intervals are those of diff --json", { skip }, async () => {
  const diff = JSON.parse(run("diff", "rec@1", "rec@3", "--by", "function", "-l", "0", "--noise", "--json"));
  const rows = diff.heaps[0].rows.filter(({ self }) => self.growth.value !== 0);
  const page = await open("native.html");
  await look(page, { tab: "changes", dump: 2, base: 0 });
  const got = await inApp(page, (app) => app.changes.rows.map(({ label, before, after, range, certain }) => ({ label, before, after, range, certain })));
  assert.deepEqual(got.map(({ label }) => label).sort(), rows.map(({ name }) => name).sort());
  for (const { name, self } of rows) {
    const row = got.find(({ label }) => label === name);
    assert.deepEqual([row.before, row.after], [self.before.bytes, self.after.bytes], name);
    close(row.range, self.growth, name);
    assert.equal(row.certain, self.confirmed, `${name}: within sampling error or not`);
  }
  await page.close();
});

test("1-4 on a real report: no requests, no errors", { skip }, async () => {
  const page = await open("native.html");
  for (const tab of await inApp(page, (app) => app.tabs)) await look(page, { tab, base: 0 });
  assert.deepEqual(page.told.console, []);
  assert.deepEqual(page.told.errors, []);
  assert.deepEqual(page.told.requests.map((url) => url.replace(/#.*/, "")), [`file://${page.file}`]);
  assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
  const html = readFileSync(page.file, "utf8");
  assert.ok(html.includes(readFileSync(new URL("../dist/report.js", import.meta.url), "utf8")), "it contains this viewer");
  await page.close();
});

test("the first screen shows where the memory is, growth, and memory outside the profile", { skip }, async () => {
  const page = await open("native.html");
  await page.waitForFunction(() => document.querySelector(".cards .tag"));
  const words = await page.locator(".cards").textContent();
  assert.match(words, /MiB/);
  assert.match(words, /EventHistory::Append/, "the planted leak is named");
  assert.match(words, /Outside this profile: .*Graphics/);
  assert.equal(await page.locator("#heaptap-static").isVisible(), false);
  assert.equal(await inApp(page, (app) => app.header.dumps[app.state.dump].label), "after", "the last dump with a label");
  await page.close();
});

test("29 on a real report: the static part reads without scripts", { skip }, async () => {
  const bare = await browser({ javaScriptEnabled: false });
  const page = await bare.openFile(join(folder, "native.html"), { wait: false });
  assert.match(await page.locator("#heaptap-static").innerText(), /EventHistory::Append/);
  await bare.close();
});

test("29d: the static part is accessible, all of it unfolded, on narrow and wide screens", { skip }, async () => {
  run("report", "rec", "rec/java", "-o", "both.html");
  for (const width of [400, 1200]) {
    const page = await open("both.html");
    await page.setViewportSize({ width, height: 800 });
    // As where scripts are off: axe itself needs them.
    await page.evaluate(() => {
      document.documentElement.classList.remove("heaptap-live");
      document.querySelector("#heaptap-app").remove();
      for (const each of document.querySelectorAll("details")) each.open = true;
    });
    assert.ok((await page.locator("nav").count()) > 1, "it has several Java heaps");
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() =>
      globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }),
    );
    assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html }) => html.slice(0, 120)).join(" | ")}`), [], `${width} px`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.equal(wide, 0, `${width} px`);
    await page.close();
  }
});

test("29e: a table that is wider than the page has a name, and scrolls by keyboard", { skip }, async () => {
  const bare = await browser({ javaScriptEnabled: false, viewport: { width: 400, height: 800 } });
  const page = await bare.openFile(join(folder, "native.html"), { wait: false });
  const tables = page.locator(".scroll");
  let place = 0;
  while (!(await tables.nth(place).evaluate((each) => each.scrollWidth > each.clientWidth + 40))) place += 1;
  const table = tables.nth(place);
  assert.ok(await table.getAttribute("aria-label"));
  await table.focus();
  const moved = () => table.evaluate((each) => each.scrollLeft);
  for (let i = 0; i < 500 && (await moved()) === 0; i++) await page.keyboard.press("ArrowRight");
  assert.ok((await moved()) > 0);
  await bare.close();
});

test("a difference opens as one", { skip }, async () => {
  run("report", "rec@last", "--base", "rec@1", "-o", "diff.html");
  run("diff", "rec@1", "rec@last", "-o", "diff2.html");
  for (const file of ["diff.html", "diff2.html"]) {
    const page = await open(file);
    assert.notEqual(await inApp(page, (app) => app.state.base), null);
    await look(page, { tab: "changes" });
    const first = page.locator(".table-scroll tbody tr[data-row]").first();
    assert.match(await first.textContent(), /EventHistory::Append.*grew/);
    await page.close();
  }
});

test("a Java heap: classes, dominators, leaks", { skip }, async () => {
  run("report", "rec/java", "-o", "java.html");
  const page = await open("java.html");
  assert.deepEqual(await inApp(page, (app) => app.tabs), ["java", "info"]);
  const [rows, facts] = await inApp(page, async (app) => {
    const file = await app.javas[0]();
    return [file.answer("classes", { by: "class", limit: 1e6 }).rows, app.header.java[0]];
  });
  assert.equal(rows.reduce((sum, row) => sum + row.count, 0), facts.objects);
  assert.equal(rows.reduce((sum, row) => sum + row.shallow_bytes, 0), facts.shallow);
  const view = async (title, text) => {
    await page.locator(".explorer nav.tabs").getByText(title, { exact: true }).click();
    await page.waitForFunction((text) => document.querySelector(".explored:not([aria-busy])")?.textContent.includes(text), text);
  };
  await view("Dominators", "Retained");
  assert.ok((await page.locator(".treemap .cell").count()) > 5);
  await view("Leaks", "DetailActivity");
  assert.match(await page.locator(".leaks article").first().textContent(), /confirmed.*destroyed Activity: .*DetailActivity/s);
  assert.equal(await page.locator(".leaks .tag.leaking").first().textContent(), "leaking");
  assert.deepEqual(page.told.errors, []);
  await page.close();
});
