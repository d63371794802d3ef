// The heap explorer: shows the place in the address, in a page of its own or as a part of the report.

import { fill, h, name } from "../dom";
import { counted, thousands } from "../units";
import { answers, kept, type Meta } from "./api";
import { decode, encode, type Place } from "./place";
import { failure } from "./rows";
import { RENDER } from "./views";

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

export class Explorer {
  readonly search = h("input", { class: "explorer-search", type: "search", "aria-label": "Search in this view, or open an object by its ID" });
  readonly element: HTMLElement;
  /** Facts about the heap; null before it is read. */
  meta: Meta | null = null;
  private readonly tabs = h("nav", { class: "tabs", "aria-label": "Views" });
  /** The place that is shown. */
  private place: Place = { view: "overview" };
  private running = new AbortController();
  private typing = 0;

  /** Creates an explorer that shows views in `content`, below its tabs and `bar`. */
  constructor(
    private readonly content: HTMLElement,
    bar: HTMLElement | null = null,
  ) {
    content.className = "explored";
    content.tabIndex = -1;
    this.element = h("div", { class: "explorer" }, bar, this.tabs, content);
    this.search.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = window.setTimeout(() => this.find(), TYPING);
    });
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.find();
    });
  }

  /** Forgets the heap, whose objects are not those of the next one. */
  forget(): void {
    this.running.abort();
    this.meta = null;
  }

  /** Shows why there is no heap. */
  fail(why: string): void {
    fill(this.content, h("p", { class: "failed", role: "alert" }, why));
  }

  private has(view: Place["view"]): boolean {
    if (view === "strings" || view === "arrays") return answers("search", { in: view });
    if (view === "sql" && kept()) return false;
    if (view === "compare") return this.meta?.before != null;
    return view !== "sql" || this.meta?.sql === true;
  }

  /** Shows a place. */
  async show(address = location.hash): Promise<void> {
    // Who has gone elsewhere no longer searches.
    clearTimeout(this.typing);
    const place = decode(address);
    this.place = place;
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
      failure(this.content, error instanceof Error ? error.message : String(error), () => void this.show(address));
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
      const { place } = this;
      const next: Place = { view: SEARCHED[place.view] ? place.view : "classes", filter: typed };
      if (place.view === "classes" && place.by) next.by = place.by;
      location.hash = encode(next);
    }
  }

  /** Follows a key; returns whether it has a meaning. */
  key(event: KeyboardEvent): boolean {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const target = event.target;
    const isTyping = target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
    if (event.key === "Escape" && isTyping) {
      this.content.focus();
      return true;
    }
    if (isTyping) return false;
    if (event.key === "/") {
      this.search.focus();
      this.search.select();
      return true;
    }
    const action = /^[a-z]$/.test(event.key) && this.content.querySelector<HTMLElement>(`[data-key="${event.key}"]`);
    if (action) action.click();
    return Boolean(action);
  }
}
