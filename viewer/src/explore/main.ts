// The heap explorer: shows the place in the address, from answers of the server.

import { fill, h, name, put } from "../dom";
import { ThemeSwitch } from "../theme";
import { answers, ApiError, ask, begin, kept, type HeapFacts, type Meta } from "./api";
import { decode, encode, type Place } from "./place";
import { counted, thousands } from "../units";
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
  ["flame", "Flame graph"],
  ["strings", "Strings"],
  ["arrays", "Arrays"],
  ["bitmaps", "Bitmaps"],
  ["waste", "Waste"],
  ["compare", "Compare"],
  ["sql", "SQL"],
];

/** What the search field looks for, by view; classes in the others. */
const SEARCHED: Partial<Record<Place["view"], string>> = {
  classes: "Class",
  objects: "Class of an object",
  strings: "Text of a string",
  arrays: "Class of an array",
  compare: "Class",
};

class Page {
  private readonly title = h("h1", null, "Java heap");
  private readonly facts = h("span", { class: "facts" });
  private readonly dumps = h("span");
  private readonly state = h("span", { class: "tag", role: "status" });
  private readonly tabs = h("nav", { class: "tabs", "aria-label": "Views" });
  private readonly search = h("input", { type: "search", "aria-label": "Search in this view, or open an object by its ID" });
  private readonly content = h("main", { class: "explored", tabindex: -1 });
  private meta: Meta | null = null;
  private running = new AbortController();
  private typing = 0;
  private beating = 0;

  constructor(root: HTMLElement) {
    const theme = new ThemeSwitch(() => undefined);
    put(root, h("header", { class: "top" }, this.title, this.dumps, this.facts, this.state, h("span", { class: "gap" }), this.search, theme.button), this.tabs, this.content);
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
      const isCompared = this.meta?.before == null && meta.before !== null;
      const isFailed = this.meta?.error == null && meta.error !== null;
      this.meta = meta;
      this.describe(meta);
      if (isFirst || isSized || isCompared || isFailed) void this.show();
      if ((meta.heap === null && meta.error === null) || meta.step !== "") wait = SOON;
    } catch (error) {
      this.state.textContent = error instanceof ApiError ? error.message : "heaptap has ended; start `heaptap explore` again";
      this.state.className = "tag bad";
      if (!(error instanceof ApiError)) return;
    }
    if (kept()) return;
    this.beating = window.setTimeout(() => void this.beat(), wait);
  }

  private describe(meta: Meta): void {
    this.state.textContent = meta.step || "all indices are built";
    this.state.hidden = meta.step === "" && meta.heap !== null;
    const heap = meta.heap;
    if (!heap) return;
    fill(this.title, name(heap.process ?? heap.path));
    fill(this.dumps, ...this.others(heap));
    const words = [heap.process ? heap.path : null, heap.label, heap.time, heap.source === "hprof" ? "HPROF" : "heap graph"];
    fill(this.facts, ...words.filter((word) => word !== null).map((word) => h("span", null, name(word!))));
    document.title = `${heap.process ?? heap.path} – heaptap`;
  }

  /** Returns what chooses another dump of the process, if there are several. */
  private others(heap: HeapFacts): HTMLElement[] {
    if (heap.dumps < 2 || kept()) return [];
    const options = Array.from({ length: heap.dumps }, (_, at) => h("option", { value: at + 1, selected: at + 1 === heap.number }, `Dump ${at + 1} of ${heap.dumps}`));
    const choice = h("select", { "aria-label": "Dump" }, ...options);
    choice.addEventListener("change", () => void this.choose(Number(choice.value)));
    return [choice];
  }

  private async choose(number: number): Promise<void> {
    this.running.abort();
    await ask("show", { number });
    // Rows and objects of the other dump are others.
    this.meta = null;
    location.hash = encode({ view: "overview" });
    clearTimeout(this.beating);
    void this.beat();
  }

  private has(view: Place["view"]): boolean {
    if (view === "strings" || view === "arrays") return answers("search", { in: view });
    if (view === "sql" && kept()) return false;
    if (view === "compare") return this.meta?.before != null;
    return view !== "sql" || this.meta?.sql === true;
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
      ...TABS.filter(([view]) => this.has(view)).map(([view, title]) => h("a", { href: encode({ view }), "aria-current": view === place.view ? "page" : null }, title)),
    );
    this.search.placeholder = `${SEARCHED[place.view] ?? "Class"}, or object ID`;
    if (document.activeElement !== this.search) this.search.value = place.filter ?? "";
    const meta = this.meta;
    if (!meta?.heap) {
      fill(this.content, h("p", { class: meta?.error ? "failed" : "soft", role: meta?.error ? "alert" : null }, meta?.error ?? "Reading the heap …"));
      return;
    }
    this.content.setAttribute("aria-busy", "true");
    try {
      const shown = await RENDER[place.view](place, meta, signal);
      if (signal.aborted) return;
      const file = kept();
      const told = file && h("p", { class: "soft" }, `This file has ${thousands(file.objects)} of ${counted(meta.reachable?.count ?? meta.objects, "object")}. `, h("code", null, name(file.command)), " shows all.");
      fill(this.content, told, ...meta.heap.warnings.map((each) => h("p", { class: "warning" }, each.message, each.help ? ` ${each.help}` : "")), shown);
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
      const next: Place = { view: SEARCHED[place.view] ? place.view : "classes", filter: typed };
      if (place.view === "classes" && place.by) next.by = place.by;
      location.hash = encode(next);
    }
  }

  private key(event: KeyboardEvent): void {
    const target = event.target;
    const isTyping = target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement;
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      this.search.focus();
      this.search.select();
    } else if (!isTyping && !event.ctrlKey && !event.metaKey && !event.altKey && /^[a-z]$/.test(event.key)) {
      this.content.querySelector<HTMLElement>(`[data-key="${event.key}"]`)?.click();
    } else if (event.key === "Escape" && isTyping) {
      this.content.focus();
    }
  }
}

const root = document.getElementById("heaptap-app");
if (root) {
  document.documentElement.classList.add("heaptap-live");
  void begin().then(() => Object.defineProperty(root, "heaptap", { value: new Page(root) }));
}
