// Headless Chromium for the tests. Its pages log every console message, error, request and violation of
// the content policy.

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { page as makePage } from "./encode.mjs";

export const CHROMIUM = process.env.HEAPTAP_CHROMIUM ?? ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Starts a browser with its own profile directory, and a directory for pages; `close` removes both. */
export async function browser(options = {}) {
  const folder = mkdtempSync(join(tmpdir(), "heaptap-viewer-"));
  const context = await chromium.launchPersistentContext(join(folder, "profile"), {
    executablePath: CHROMIUM,
    args: FLAGS,
    viewport: { width: 1280, height: 900 },
    ...options,
  });
  context.setDefaultTimeout(60_000);
  let pages = 0;
  return {
    context,
    folder,
    /** Writes a report as a file and opens it. */
    async open(report, { hash = "", wait = true, ...how } = {}) {
      const file = join(folder, `report-${pages++}.html`);
      writeFileSync(file, typeof report === "string" ? report : makePage(report, how));
      return this.openFile(file, { hash, wait });
    },
    async openFile(file, { hash = "", wait = true } = {}) {
      const page = await context.newPage();
      page.told = { console: [], errors: [], requests: [], violations: [] };
      page.file = file;
      page.on("console", (message) => {
        if (["error", "warning"].includes(message.type())) page.told.console.push(message.text());
      });
      page.on("pageerror", (error) => page.told.errors.push(String(error)));
      page.on("request", (request) => {
        // Blobs and data URLs stay in the memory of the page.
        if (!/^(blob|data):/.test(request.url())) page.told.requests.push(request.url());
      });
      await page.addInitScript(() => {
        globalThis.violations = [];
        addEventListener("securitypolicyviolation", (event) => globalThis.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
      });
      await page.goto(`file://${file}${hash}`);
      if (wait) await page.waitForFunction(() => document.querySelector("#heaptap-app").dataset.ready === "true");
      return page;
    },
    async close() {
      await context.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Runs in the page with its App. */
export function inApp(page, run, argument) {
  return page.evaluate(`(${run})(document.querySelector("#heaptap-app").heaptap, ${JSON.stringify(argument ?? null)})`);
}

/** Changes the state of the page, and waits until it is shown. */
export async function look(page, patch) {
  await inApp(page, (app, patch) => app.change(patch), patch);
  await settled(page, patch);
}

/** Waits until the page shows its current state. */
export async function settled(page) {
  await page.waitForFunction(() => {
    const app = document.querySelector("#heaptap-app").heaptap;
    return !app.scene || app.scene.state === app.state;
  });
}

/** Returns a whole tree: [label, value, before, children…], children by label. */
export function wholeTree(page, which = "tree") {
  return inApp(
    page,
    (app, which) => {
      const tree = app.scene[which];
      const walk = (cell) => {
        const children = tree.children(cell).map(walk).sort((a, b) => (a[0] < b[0] ? -1 : 1));
        const labels = [cell.key, ...cell.chain].map((key) => app.scene.keys.label(key));
        return [labels.join(" > "), cell.after, cell.before, children];
      };
      return walk(tree.root);
    },
    which,
  );
}
