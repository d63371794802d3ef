// Opens the output of `heaptap convert --format speedscope` with speedscope, and fetches the trace of
// `heaptap open` as the Perfetto UI does. HEAPTAP is the path of the program.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { browser } from "./browser.mjs";

const HEAPTAP = process.env.HEAPTAP ?? "";
const skip = existsSync(HEAPTAP) ? false : "HEAPTAP is not the path of a program";
const SPEEDSCOPE = fileURLToPath(new URL("../node_modules/speedscope/dist/release/index.html", import.meta.url));

let folder;
let environment;
let chromium;

function heaptap(...words) {
  const ran = spawnSync(HEAPTAP, words, { cwd: folder, env: environment, encoding: "utf8" });
  assert.equal(ran.status, 0, `${words}: ${ran.stderr}`);
  return ran.stdout;
}

before(async () => {
  if (skip) return;
  folder = mkdtempSync(join(tmpdir(), "heaptap-exports-"));
  environment = { ...process.env, HEAPTAP_STATE_DIR: join(folder, "state"), HEAPTAP_CACHE_DIR: join(folder, "cache") };
  heaptap("demo", "-o", "rec");
  heaptap("convert", "rec", "--format", "json", "-o", "all.json");
  heaptap("convert", "rec", "--format", "speedscope", "-o", "all.speedscope.json");
  chromium = await browser();
});
after(async () => {
  await chromium?.close();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

/** Numbers as speedscope shows them, in its own units: KB is 1024 bytes there. */
function shown(value, unit) {
  if (unit !== "bytes") return value.toLocaleString("en-US");
  for (const [size, name] of [[2 ** 30, "GB"], [2 ** 20, "MB"], [2 ** 10, "KB"]]) {
    if (value >= size) return `${(value / size).toFixed(2)} ${name}`;
  }
  return `${value} B`;
}

test("speedscope shows every dump and view with its total", { skip }, async () => {
  const base64 = readFileSync(join(folder, "all.speedscope.json")).toString("base64");
  const script = join(folder, "profile.js");
  writeFileSync(script, `speedscope.loadFileFromBase64("all.speedscope.json", "${base64}")`);
  const page = await chromium.context.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(`file://${SPEEDSCOPE}#localProfilePath=${script}&view=sandwich`);
  await page.waitForFunction(() => document.body.innerText.includes("Symbol Name"));
  // The last dump, by unreleased bytes.
  assert.match(await page.evaluate(() => document.body.innerText), /@7[^\n]*: space \(\d+\/28\)/);
  const rows = await page.evaluate(() =>
    [...document.querySelectorAll("tr[title]")].map((row) => [row.title, row.lastElementChild.textContent]),
  );
  const expected = [];
  const { dumps } = JSON.parse(readFileSync(join(folder, "all.json"), "utf8"));
  for (const dump of dumps) {
    dump.measures.forEach((measure, at) => {
      const label = dump.label === null ? "" : ` ${dump.label}`;
      const title = `${dump.process} (${dump.pid}) ${dump.heap} @${dump.number}${label}: ${measure.name}`;
      expected.push([title, shown(dump.totals[at], measure.unit)]);
    });
  }
  assert.equal(expected.length, 28);
  assert.deepEqual(rows.filter(([title]) => expected.some(([other]) => other === title)), expected);
  assert.deepEqual(errors, []);
  await page.close();
});

test("speedscope adds up functions as the document has them", { skip }, async () => {
  const document = JSON.parse(readFileSync(join(folder, "all.json"), "utf8"));
  const dump = document.dumps.at(-1);
  const space = dump.values[dump.default_measure];
  const selves = new Map();
  dump.callsite.forEach((callsite, at) => {
    const frame = document.frames[document.callsites.frame[callsite]];
    const { name } = document.functions[frame.function];
    // It tells frames of other lines apart.
    const key = `${name}\n${frame.line}`;
    selves.set(key, (selves.get(key) ?? 0) + space[at]);
  });
  const [[key, most]] = [...selves].sort((a, b) => b[1] - a[1]);
  const page = chromium.context.pages().at(-1) ?? (await chromium.context.newPage());
  await page.goto("about:blank");
  await page.goto(`file://${SPEEDSCOPE}#localProfilePath=${join(folder, "profile.js")}&view=sandwich`);
  await page.waitForFunction(() => document.body.innerText.includes("Symbol Name"));
  const text = await page.evaluate(() => document.body.innerText);
  const first = text.slice(text.indexOf("Symbol Name")).split("\n").map((line) => line.trim()).filter(Boolean);
  // Total, self, name of the function with most of its own.
  assert.ok(first[2].startsWith(`${shown(most, "bytes")} (`), `${first.slice(0, 4)}: ${most}`);
  assert.equal(first[3], key.split("\n")[0]);
});

/** A UI: asks for `?url=` as Perfetto's does, or waits for a trace to be posted. */
async function fakeUi() {
  const server = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end(`<!doctype html><title>UI</title><script>
      const url = new URLSearchParams(location.hash.replace(/^#!\\/\\?/, "")).get("url");
      globalThis.got = null;
      if (url) fetch(url).then((r) => r.arrayBuffer()).then((b) => { globalThis.got = b.byteLength }, (e) => { globalThis.got = String(e) });
      addEventListener("message", (m) => {
        if (m.data === "PING") m.source.postMessage("PONG", m.origin);
        else if (m.data.perfetto) globalThis.got = [m.data.perfetto.buffer.byteLength, m.data.perfetto.title];
      });
    </script>`);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, url: `http://127.0.0.1:${server.address().port}` };
}

/** `heaptap open`, the address it prints, and how it ends. */
async function open(...words) {
  const child = spawn(HEAPTAP, ["open", "rec", "--print-url", ...words], { cwd: folder, env: environment });
  let told = "";
  child.stderr.on("data", (data) => (told += data));
  const ended = new Promise((resolve) => child.on("close", resolve));
  const lines = createInterface({ input: child.stdout });
  const url = await Promise.race([new Promise((resolve) => lines.once("line", resolve)), ended.then(() => null)]);
  return { child, url, ended, told: () => told };
}

test("a page of the UI's origin fetches the trace, and no other does", { skip }, async (context) => {
  const ui = await fakeUi();
  const other = await fakeUi();
  const served = await open("--ui", ui.url);
  try {
    if (!served.url && served.told().includes("port 9001")) return context.skip("port 9001 is in use here");
    const page = await chromium.context.newPage();
    const trace = served.url.split("?url=")[1];
    await page.goto(`${other.url}/#!/?url=${trace}`);
    await page.waitForFunction(() => globalThis.got !== null);
    assert.match(String(await page.evaluate(() => globalThis.got)), /TypeError/);
    await page.goto(served.url);
    await page.waitForFunction(() => globalThis.got !== null);
    assert.equal(await page.evaluate(() => globalThis.got), readFileSync(join(folder, "rec/symbolized-trace")).length);
    await page.close();
    assert.equal(await served.ended, 0);
  } finally {
    served.child.kill();
    ui.server.close();
    other.server.close();
  }
});

test("the page on this computer hands the trace over when it is asked to", { skip }, async () => {
  const ui = await fakeUi();
  const served = await open("--page", "--ui", ui.url);
  try {
    const page = await chromium.context.newPage();
    const complaints = [];
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(String(error)));
    await page.goto(served.url);
    await page.waitForFunction(() => !document.querySelector("#open").disabled);
    assert.equal(await served.ended, 0, "it has given the trace away");
    const [popup] = await Promise.all([page.waitForEvent("popup"), page.click("#open")]);
    await popup.waitForFunction(() => globalThis.got !== null);
    const [bytes, title] = await popup.evaluate(() => globalThis.got);
    assert.equal(bytes, readFileSync(join(folder, "rec/symbolized-trace")).length);
    assert.equal(title, "rec.pftrace");
    assert.match(await page.textContent("#state"), /the UI has the trace/);
    // A favicon that is not there is all that may be missing.
    assert.deepEqual(complaints.filter((text) => !/favicon|404|Connection|ERR_/i.test(text)), []);
    await popup.close();
    await page.close();
  } finally {
    served.child.kill();
    ui.server.close();
  }
});
