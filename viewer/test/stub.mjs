// The page of the explorer with answers of a test.

import { readFileSync } from "node:fs";
import { javaHeap } from "./samples.mjs";

const dist = (file) => readFileSync(new URL(`../dist/${file}`, import.meta.url), "utf8");
const HTML = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>heaptap</title><style>${dist("report.css")}</style></head><body><div id="heaptap-app"></div><script>${dist("explore.js")}</script></body></html>`;
export const URL_OF_PAGE = "http://heaptap.test/";

/** Returns the key of an answer in a store. */
function key(operation, query) {
  const part = ["offset", "limit", "sort", "reverse", "filter", "most", "text", "from", "cells", "generation"];
  const words = [...query].filter(([name]) => !part.includes(name)).map(([name, value]) => `${name}=${value}`);
  return `${operation}?${words.sort().join("&")}`;
}

/** Opens the page in a browser. `answer` gets the operation and the query; undefined is the answer of the sample. */
export async function openIn(browser, answer = () => undefined, { heap = javaHeap(), hash = "" } = {}) {
  const page = await browser.context.newPage();
  const asked = [];
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.route(`${URL_OF_PAGE}**`, async (route) => {
    const url = new URL(route.request().url());
    if (!url.pathname.startsWith("/api/")) return route.fulfill({ contentType: "text/html", body: HTML });
    const operation = url.pathname.slice("/api/".length);
    asked.push({ operation, ...Object.fromEntries(url.searchParams) });
    const given = await answer(operation, url.searchParams);
    if (given === "abort") return route.abort();
    const { status = 200, json = heap.store[key(operation, url.searchParams)] } = given ?? {};
    return route.fulfill(json === undefined ? { status: 404, json: { error: "no answer" } } : { status, json });
  });
  await page.goto(URL_OF_PAGE + hash);
  return { page, asked, errors, heap };
}

/** Waits until a view with that text is complete. */
export async function shown(page, text) {
  await page.waitForFunction((text) => {
    const main = document.querySelector(".explored");
    return main && !main.hasAttribute("aria-busy") && main.textContent.includes(text);
  }, text);
}

/** Returns the answer about the state, with other facts. */
export const facts = (heap, more) => ({ json: { ...heap.store["meta?"], ...more } });
/** Returns the facts about the heap, with others. */
export const of = (heap, more) => ({ ...heap.store["meta?"].heap, ...more });
export const focused = (page) => page.evaluate(() => document.activeElement.textContent);

/** Waits until the page has the answers to what it asked for. */
export const answered = (page) => page.evaluate(() => fetch("later"));

/** Waits until the page has asked for something. */
export async function isAsked(page, holds) {
  for (let n = 0; !holds(); n++) {
    if (n >= 1000) throw new Error(`not asked: ${holds}`);
    await answered(page);
  }
}
