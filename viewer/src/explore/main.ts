// The heap explorer: shows the place in the address, from answers of the server.

import { fill, h, name, put } from "../dom";
import { ThemeSwitch } from "../theme";
import { ApiError, ask, type Meta } from "./api";
import { decode, encode, type Place } from "./place";
import { failure } from "./rows";
import { RENDER } from "./views";

/** Interval of requests for the state, in ms: often while the heap is read, then to show that the page is open. */
const SOON = 250;
const BEAT = 20_000;
/** Delay from the last key to a request, in ms. */
const TYPING = 150;
const TABS: [Place["view"], string][] = [
  ["overview", "Overview"],
  ["leaks", "Leaks"],
  ["classes", "Classes"],
  ["objects", "Objects"],
  ["dominators", "Dominators"],
  ["waste", "Waste"],
];

class Page {
  private readonly title = h("h1", null, "Java heap");
  private readonly facts = h("span", { class: "facts" });
  private readonly state = h("span", { class: "tag", role: "status" });
  private readonly tabs = h("nav", { class: "tabs", "aria-label": "Views" });
  private readonly search = h("input", { type: "search", placeholder: "Class or object ID", "aria-label": "Search classes, or open an object by its ID" });
  private readonly content = h("main", { class: "explored", tabindex: -1 });
  private meta: Meta | null = null;
  private running = new AbortController();
  private typing = 0;

  constructor(root: HTMLElement) {
    const theme = new ThemeSwitch(() => undefined);
    put(root, h("header", { class: "top" }, this.title, this.facts, this.state, h("span", { class: "gap" }), this.search, theme.button), this.tabs, this.content);
    window.addEventListener("hashchange", () => void this.show());
    this.search.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = window.setTimeout(() => this.find(), TYPING);
    });
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.find();
    });
    document.addEventListener("keydown", (event) => this.key(event));
    void this.beat();
  }

  /** Asks for the state, again and again. */
  private async beat(): Promise<void> {
    let wait = BEAT;
    try {
      const meta = await ask<Meta>("meta");
      const isFirst = this.meta?.heap == null && meta.heap !== null;
      const isSized = this.meta?.reachable == null && meta.reachable !== null;
      this.meta = meta;
      this.describe(meta);
      if (isFirst || isSized) void this.show();
      if (meta.heap === null || meta.step !== "") wait = SOON;
    } catch (error) {
      this.state.textContent = error instanceof ApiError ? error.message : "heaptap has ended; start `heaptap explore` again";
      this.state.className = "tag bad";
      if (!(error instanceof ApiError)) return;
    }
    window.setTimeout(() => void this.beat(), wait);
  }

  private describe(meta: Meta): void {
    this.state.textContent = meta.step || "all indices are built";
    this.state.hidden = meta.step === "" && meta.heap !== null;
    const heap = meta.heap;
    if (!heap) return;
    fill(this.title, name(heap.process ?? heap.path));
    const words = [heap.process ? heap.path : null, heap.label, heap.time, heap.source === "hprof" ? "HPROF" : "heap graph"];
    fill(this.facts, ...words.filter((word) => word !== null).map((word) => h("span", null, name(word!))));
    document.title = `${heap.process ?? heap.path} – heaptap`;
  }

  /** Shows the place in the address. */
  private async show(): Promise<void> {
    // Who has gone elsewhere no longer searches.
    clearTimeout(this.typing);
    const place = decode(location.hash);
    this.running.abort();
    this.running = new AbortController();
    const { signal } = this.running;
    fill(
      this.tabs,
      ...TABS.map(([view, title]) => h("a", { href: encode({ view }), "aria-current": view === place.view ? "page" : null }, title)),
    );
    if (document.activeElement !== this.search) this.search.value = place.filter ?? "";
    const meta = this.meta;
    if (!meta?.heap) {
      fill(this.content, h("p", { class: "soft" }, "Reading the heap …"));
      return;
    }
    this.content.setAttribute("aria-busy", "true");
    try {
      const shown = await RENDER[place.view](place, meta, signal);
      if (signal.aborted) return;
      fill(this.content, ...meta.heap.warnings.map((each) => h("p", { class: "warning" }, each.message, each.help ? ` ${each.help}` : "")), shown);
    } catch (error) {
      if (signal.aborted) return;
      failure(this.content, error instanceof Error ? error.message : String(error), () => void this.show());
    } finally {
      if (!signal.aborted) this.content.removeAttribute("aria-busy");
    }
  }

  /** Opens the object of a typed ID, or the classes with a typed text. */
  private find(): void {
    clearTimeout(this.typing);
    const typed = this.search.value.trim();
    if (/^0x[0-9a-f]{3,16}$/i.test(typed)) location.hash = encode({ view: "object", id: typed.toLowerCase() });
    else {
      const place = decode(location.hash);
      const next: Place = { view: "classes", filter: typed };
      if (place.view === "classes" && place.by) next.by = place.by;
      location.hash = encode(next);
    }
  }

  private key(event: KeyboardEvent): void {
    const target = event.target;
    const isTyping = target instanceof HTMLInputElement;
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      this.search.focus();
      this.search.select();
    } else if (event.key === "Escape" && isTyping) {
      this.content.focus();
    }
  }
}

const root = document.getElementById("heaptap-app");
if (root) {
  document.documentElement.classList.add("heaptap-live");
  Object.defineProperty(root, "heaptap", { value: new Page(root) });
}
