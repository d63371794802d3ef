// Starts the viewer: reads the data from the page and shows it. If that fails, it shows the reason, and
// the static part of the page stays.

import { App } from "./app";
import { parseReport, readJava, readProfile, takeBlocks, DataError } from "./decode";
import { h, put } from "./dom";
import { bindKeys } from "./keyboard";
import type { Profile } from "./profile";

function showError(root: HTMLElement, error: unknown): void {
  const reason = error instanceof DataError ? error.message : `internal error: ${String(error)}`;
  root.replaceChildren();
  put(root, h("p", { class: "failed", role: "alert" }, `Cannot show the interactive view: ${reason}. The summary on this page does not need it.`));
  console.error(error);
}

async function begin(root: HTMLElement): Promise<void> {
  if (typeof DecompressionStream === "undefined") {
    throw new DataError("this browser does not support DecompressionStream; use Chrome 80, Firefox 113, Safari 16.4 or newer");
  }
  const data = await takeBlocks(document);
  if (!data) return;
  const opened = parseReport(data);
  const profile: Profile = readProfile(opened);
  const javas = (opened.header.java ?? []).map((java) => readJava(opened, java.section));
  document.documentElement.classList.add("heaptap-live");
  const app = new App(root, opened.header, profile, javas);
  bindKeys(app);
  // For tests and for the browser console.
  Object.defineProperty(root, "heaptap", { value: app });
  await app.begin();
}

const root = document.getElementById("heaptap-app");
if (root) {
  begin(root).catch((error: unknown) => {
    document.documentElement.classList.remove("heaptap-live");
    showError(root, error);
  });
}
