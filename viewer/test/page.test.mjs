// Security of the page: no requests, no violations of the content policy, and no effect of hostile names.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { browser, inApp, look, settled } from "./browser.mjs";
import { encode } from "./encode.mjs";
import { game } from "./samples.mjs";

let chromium;
let page;
before(async () => {
  chromium = await browser();
  page = await chromium.open(game());
  // Through every page and view, so that whatever complains has had its chance.
  for (const tab of await inApp(page, (app) => app.tabs)) await look(page, { tab });
  for (const view of ["bottom-up", "top-down"]) await look(page, { tab: "flame", view });
  await look(page, { filters: ["P: /decode/"], view: "sandwich" });
  await look(page, { dump: 2, base: 0, width: "change", filters: [], view: "top-down" });
  await page.keyboard.press("?");
  await page.keyboard.press("Escape");
});
after(() => chromium.close());

test("1: no console errors", () => {
  assert.deepEqual(page.told.console, []);
  assert.deepEqual(page.told.errors, []);
});

test("2: no requests but for the page itself", () => {
  assert.deepEqual(page.told.requests.map((url) => url.replace(/#.*/, "")), [`file://${page.file}`]);
});

test("3: no violation of the content policy, which forbids all it can", async () => {
  assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
  const policy = await page.getAttribute("meta[http-equiv=Content-Security-Policy]", "content");
  assert.match(policy, /^default-src 'none'; script-src 'sha256-/);
  assert.doesNotMatch(policy, /unsafe|\*|https?:/);
  // It is enforced: other scripts do not run.
  const ran = await page.evaluate(() => {
    globalThis.ran = false;
    const script = document.createElement("script");
    script.textContent = "globalThis.ran = true";
    document.body.append(script);
    return globalThis.ran;
  });
  assert.equal(ran, false);
});

test("4: the hash in the policy is that of the script's bytes", () => {
  const html = readFileSync(page.file, "utf8");
  const script = html.slice(html.lastIndexOf("<script>") + "<script>".length, html.lastIndexOf("</script>"));
  const hash = createHash("sha256").update(script).digest("base64");
  assert.ok(html.includes(`script-src 'sha256-${hash}'`));
  assert.equal(script, readFileSync(new URL("../dist/report.js", import.meta.url), "utf8"));
});

const HOSTILE = [
  "</script><script>globalThis.owned = 1</script>",
  "<img src=x onerror='globalThis.owned = 2'>",
  "<!--<script>",
  "]]>&amp;\u2028\u2029",
  "__proto__",
  "constructor",
];

function hostile() {
  const stacks = HOSTILE.map((name, i) => ({
    stack: [{ name, lib: `/data/${name}.so`, file: name }, { name: `${name}${i}`, lib: name }],
    values: { objects: 9, space: 36864, alloc_objects: 9, alloc_space: 36864 },
  }));
  return encode({
    dumps: [
      { stacks, label: HOSTILE[0], process: HOSTILE[1] },
      { stacks, label: HOSTILE[1], process: HOSTILE[1] },
    ],
    header: {
      title: HOSTILE[0],
      facts: [{ name: HOSTILE[0], value: HOSTILE[1] }],
      warnings: [{ kind: null, message: HOSTILE[0], help: HOSTILE[1] }],
      unseen: [{ what: HOSTILE[0], why: HOSTILE[1] }],
      commands: [{ what: HOSTILE[0], command: HOSTILE[1] }],
    },
  });
}

test("5: names that are markup stay names", async () => {
  const page = await chromium.open(hostile());
  for (const tab of await inApp(page, (app) => app.tabs)) await look(page, { tab, base: 0, dump: 1 });
  for (const name of HOSTILE) {
    await look(page, { tab: "flame", search: name, base: null });
    await look(page, { tab: "tree" });
  }
  assert.equal(await page.evaluate(() => globalThis.owned), undefined);
  assert.equal(await page.locator("#heaptap-app img, #heaptap-app script").count(), 0);
  assert.equal(await page.locator("h1").last().textContent(), HOSTILE[0]);
  assert.deepEqual(page.told.errors, []);
  assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
  await page.close();
});

test("6: characters that reorder or hide text are spelled out", async () => {
  const names = ["abc\u202Ecba", "زرافة", "a\u200Bb", "line\nbreak\u0007", "\uFEFFstart", "x\u2066y\u2069"];
  const page = await chromium.open(
    encode({ dumps: [{ stacks: names.map((name) => ({ stack: [name], values: { objects: 1, space: 4096 } })) }] }),
  );
  await look(page, { tab: "tree" });
  const shown = await page.locator("table bdi").allTextContents();
  for (const text of ["abc<U+202E>cba", "زرافة", "a<U+200B>b", "line<U+000A>break<U+0007>", "<U+FEFF>start", "x<U+2066>y<U+2069>"]) {
    assert.ok(shown.includes(text), `${text} among ${shown}`);
  }
  const all = await page.evaluate(() => document.querySelector("#heaptap-app").textContent);
  assert.doesNotMatch(all, /[\u202a-\u202e\u2066-\u2069\u200b\ufeff\u0007]/);
  await settled(page);
  await page.close();
});
