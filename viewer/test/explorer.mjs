// `heaptap explore` in Chromium, for tests. HEAPTAP is the path of the program; without it, the tests are
// skipped.

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { browser } from "./browser.mjs";

export const HEAPTAP = resolve(process.env.HEAPTAP ?? "");
export const skip = process.env.HEAPTAP && existsSync(HEAPTAP) ? false : "HEAPTAP is not the path of a program";
export const fixtures = join(dirname(fileURLToPath(import.meta.url)), "../../fixtures");

/** Starts a browser; `close` ends it and all programs that `open` started. */
export async function explorers() {
  const chromium = await browser();
  const folder = mkdtempSync(join(tmpdir(), "heaptap-explore-"));
  const children = [];
  return {
    chromium,
    folder,
    /** Starts the explorer of a file, or of a fixture, and opens its page. */
    async open(input, ...more) {
      const env = { ...process.env, HEAPTAP_STATE_DIR: join(folder, "state"), HEAPTAP_CACHE_DIR: join(folder, "cache") };
      const inputs = [input].flat().map((path) => resolve(fixtures, path));
      const child = spawn(HEAPTAP, ["explore", ...inputs, "--print-url", ...more], { env, stdio: ["ignore", "pipe", "ignore"] });
      children.push(child);
      const url = await new Promise((found, failed) => {
        child.stdout.once("data", (data) => found(String(data).trim()));
        child.once("exit", (code) => failed(new Error(`explore ${inputs.join(" ")} ended with ${code}`)));
      });
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
    },
    async close() {
      for (const child of children) child.kill();
      await chromium.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * Waits until a view with that text is complete. A click changes the address; the page draws in a later task,
 * and a list draws its rows in a later frame, when its height is known.
 */
export async function shown(page, text) {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await page.waitForFunction((text) => {
    const main = document.querySelector(".explored");
    return main && !main.hasAttribute("aria-busy") && main.textContent.includes(text) && !main.querySelector(".grid tbody:empty");
  }, text);
}
