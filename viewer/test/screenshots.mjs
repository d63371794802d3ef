// Pictures of a report: node screenshots.mjs NATIVE.html JAVA.html README.png [FOLDER]
// The first is the README's; with a folder, pages and looks to be judged by eye.
// Of the explorer: node screenshots.mjs --explore HEAP.html OUT.png

import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { browser } from "./browser.mjs";

const [native, java, readme, folder] = process.argv.slice(2);

if (native === "--explore") {
  const chromium = await browser({ viewport: { width: 1280, height: 800 } });
  const page = await chromium.context.newPage();
  await page.goto(`file://${resolve(java)}#/overview`);
  await page.waitForSelector(".leaks article");
  await page.waitForFunction(() => document.querySelector(".explored").textContent.includes("could be saved"));
  await page.screenshot({ path: readme });
  await chromium.close();
  console.log(readme);
  process.exit();
}

async function picture(report, file, { hash = "", dark = false, width = 1280, height = 800, full = false } = {}) {
  const chromium = await browser({ viewport: { width, height }, colorScheme: dark ? "dark" : "light", isMobile: width < 500 });
  const page = await chromium.openFile(resolve(report), { hash });
  // Growth is filled in after the first picture.
  await page.waitForTimeout(300);
  await page.screenshot({ path: file, fullPage: full });
  await chromium.close();
  console.log(file);
}

await picture(native, readme, { height: 880 });
if (folder) {
  mkdirSync(folder, { recursive: true });
  const to = (name) => join(folder, `${name}.png`);
  await picture(native, to("dark"), { dark: true });
  await picture(native, to("narrow"), { width: 390, height: 844, full: true });
  await picture(native, to("narrow-dark-functions"), { width: 390, height: 844, dark: true, hash: "#v=1&tab=functions", full: true });
  await picture(native, to("difference"), { hash: "#v=1&base=0&w=change" });
  await picture(native, to("changes"), { hash: "#v=1&base=0&tab=changes", dark: true });
  await picture(native, to("sandwich"), { hash: "#v=1&view=sandwich&f=P%3A%20Append&q=telemetry" });
  await picture(native, to("stacks"), { hash: "#v=1&tab=tree" });
  await picture(native, to("info"), { hash: "#v=1&tab=info", full: true });
  await picture(java, to("classes"), { dark: true, hash: "#/classes" });
  await picture(java, to("leaks"), { hash: "#/leaks" });
}
