// The heap explorer: shows the place in the address, in a page of its own or as a part of the report.

import { fill, h, name, sentence } from "../dom";
import { bytes, counted, thousands } from "../units";
import { answers, ApiError, ask, kept, total, type Meta, type Table } from "./api";
import { decode, encode, isPlace, type Place } from "./place";
import { failure, KEEP } from "./rows";
import { RENDER, type Render } from "./views";

/** Delay from the last key to a request, in ms. */
const TYPING_DELAY = 150;
/** Delay from scrolling to its note in the history, in ms: Safari takes 100 notes in 30 s. */
const SCROLL_DELAY = 300;
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

/** Views that show what is computed after the heap is read. */
const GROWING: Place["view"][] = ["overview", "compare"];

export class Explorer {
  readonly search = h("input", { class: "explorer-search", type: "search", "aria-label": "Search in this view, or open an object by its ID" });
  readonly element: HTMLElement;
  /** Facts about the heap; null before it is read. */
  meta: Meta | null = null;
  private readonly links = TABS.map(([view, title]) => ({ view, title, link: h("a", { "data-title": title }, title) }));
  private readonly tabs = h("nav", { class: "tabs", "aria-label": "Views" });
  /** The place that is shown; null before there is one. */
  private place: Place | null = null;
  /** Tab from which an object was opened. */
  private tab: Place["view"] = "objects";
  private running = new AbortController();
  private typing = 0;
  private scrolling = 0;
  /** Whether the view gets the focus when it is shown. */
  private isMoved = false;
  /** Whether it does so although the search field has the focus. */
  private isEntered = false;
  /** Where the page was scrolled to when the user left the view; null in a new one. */
  private top: number | null = null;

  private readonly renders: Partial<Record<Place["view"], Render>>;

  /** Creates an explorer that shows views in `content`, below its tabs and `bar`. `more` are views that not
   * every page has. */
  constructor(
    private readonly content: HTMLElement,
    bar: HTMLElement | null = null,
    more: Partial<Record<Place["view"], Render>> = {},
  ) {
    this.renders = { ...RENDER, ...more };
    content.className = "explored";
    content.tabIndex = -1;
    this.element = h("div", { class: "explorer" }, bar, this.tabs, content);
    this.search.addEventListener("input", () => {
      this.isEntered = false;
      clearTimeout(this.typing);
      this.typing = window.setTimeout(() => void this.find(), TYPING_DELAY);
    });
    window.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") void this.enter();
    });
  }

  /** Notes in the history where the page is scrolled to. */
  private scrolled(): void {
    const address = location.hash;
    clearTimeout(this.scrolling);
    this.scrolling = window.setTimeout(() => {
      if (location.hash === address && isPlace(address)) history.replaceState({ ...history.state, top: scrollY }, "");
    }, SCROLL_DELAY);
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

  /** Moves the focus to the heading of the view. */
  focus(): void {
    (this.content.querySelector<HTMLElement>("[data-entry]") ?? this.content.querySelector<HTMLElement>("h2") ?? this.content).focus({ preventScroll: true });
  }

  private has(view: Place["view"]): boolean {
    if (view === "strings" || view === "arrays") return answers("search", { in: view });
    if (view === "sql") return view in this.renders && this.meta?.sql === true;
    return view !== "compare" || this.meta?.before != null;
  }

  /** Shows a place. */
  async show(address = location.hash): Promise<void> {
    clearTimeout(this.typing);
    const place = decode(address);
    const last = this.place;
    if (last !== null && (last.view !== place.view || last.id !== place.id || last.class !== place.class)) {
      this.isMoved = true;
      this.top = (history.state as { top?: number } | null)?.top ?? null;
    }
    this.place = place;
    if (place.view !== "object") this.tab = place.view;
    this.showTabs();
    this.search.placeholder = `${SEARCHED[place.view] ?? "Class"}, or object ID`;
    if (document.activeElement !== this.search) this.search.value = place.filter ?? "";
    if (await this.render(place, address)) this.enterView();
  }

  /** Shows what was computed since, without a change of views that do not depend on it. */
  async refresh(): Promise<void> {
    this.showTabs();
    // A view whose drawing this ends is entered when it is drawn.
    if (this.place && GROWING.includes(this.place.view) && (await this.render(this.place, encode(this.place)))) this.enterView();
  }

  /** Returns whether the content of the place is shown; otherwise another place is. */
  private async render(place: Place, address: string): Promise<boolean> {
    this.running.abort();
    this.running = new AbortController();
    const { signal } = this.running;
    const meta = this.meta;
    if (!meta?.heap) {
      this.content.removeAttribute("aria-busy");
      if (meta?.error) this.fail(meta.error);
      else fill(this.content, h("p", { class: "soft" }, "Reading the heap …"));
      return true;
    }
    this.content.setAttribute("aria-busy", "true");
    try {
      const render = this.renders[place.view];
      if (!render) throw new Error("This page does not have this view.");
      const shown = await render(place, meta, signal);
      if (signal.aborted) return false;
      const focused = this.content.contains(document.activeElement) ? document.activeElement?.getAttribute(KEEP) : null;
      const title = TABS.find(([view]) => view === place.view)?.[1] ?? `Object ${place.id ?? ""}`;
      fill(this.content, h("h2", { class: "off-screen", tabindex: -1 }, name(title)), ...notes(meta), shown);
      if (focused) this.content.querySelector<HTMLElement>(`[${KEEP}="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
      this.content.querySelector("[data-entry]")?.scrollIntoView({ block: "nearest" });
    } catch (error) {
      // The page draws the other heap.
      if (signal.aborted || (error instanceof ApiError && error.isOtherHeap)) return false;
      failure(this.content, error, () => void this.show(address));
    }
    this.content.removeAttribute("aria-busy");
    return true;
  }

  /** Moves the focus to a new view, and its beginning into sight. */
  private enterView(): void {
    if (!this.isMoved && !this.isEntered) return;
    const active = document.activeElement;
    const isField = active instanceof HTMLInputElement || active instanceof HTMLSelectElement;
    if (!isField || (this.isEntered && active === this.search)) this.focus();
    this.isMoved = false;
    this.isEntered = false;
    const { top } = this.element.getBoundingClientRect();
    if (this.top !== null) scrollTo(0, this.top);
    else if (top < 0 && !this.content.querySelector("[data-entry]")) scrollBy(0, top - this.tabs.offsetHeight);
  }

  private showTabs(): void {
    const place = this.place ?? { view: "overview" };
    let next: Element | null = this.tabs.firstElementChild;
    for (const { view, link } of this.links) {
      if (!this.has(view)) {
        if (link === next) next = link.nextElementSibling;
        link.remove();
        continue;
      }
      link.href = encode({ view });
      if (view === place.view) link.setAttribute("aria-current", "page");
      else if (place.view === "object" && view === this.tab) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
      if (link === next) next = link.nextElementSibling;
      else this.tabs.insertBefore(link, next);
      if (link.hasAttribute("aria-current")) this.tabs.scrollLeft = link.offsetLeft - (this.tabs.clientWidth - link.offsetWidth) / 2;
    }
  }

  /** Searches at once, and moves the focus to what is found. */
  private async enter(): Promise<void> {
    this.isEntered = true;
    const before = location.hash;
    await this.find();
    // After more typing, the focus stays.
    if (!this.isEntered || location.hash !== before || this.content.hasAttribute("aria-busy")) return;
    this.isEntered = false;
    this.focus();
  }

  /** Opens the object of a typed ID, or the classes with a typed text. */
  private async find(): Promise<void> {
    clearTimeout(this.typing);
    const typed = this.search.value.trim();
    const id = await objectId(typed);
    // Another text has its own answer.
    if (this.search.value.trim() !== typed) return;
    if (id) {
      location.hash = encode({ view: "object", id });
      return;
    }
    const { view, by } = this.place ?? { view: "overview" };
    const next: Place = { view: SEARCHED[view] ? view : "classes", filter: typed };
    if (view === "classes" && by) next.by = by;
    location.hash = encode(next);
  }

  /** Follows a key; returns whether it has a meaning. */
  key(event: KeyboardEvent): boolean {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    if (event.key === "Escape" && isTyping(event)) {
      this.content.focus();
      return true;
    }
    if (isTyping(event)) return false;
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

/** Returns whether a key goes to a field. */
export function isTyping({ target }: KeyboardEvent): boolean {
  return target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/**
 * Returns the object ID that a text means; null for other texts. Without 0x, it can be a part of a class name too, and
 * digits can be decimal, as SQL prints addresses.
 */
async function objectId(text: string): Promise<string | null> {
  const id = (number: string): string => `0x${BigInt(number).toString(16)}`;
  if (/^0x[0-9a-f]{3,16}$/i.test(text)) return id(text.toLowerCase());
  if (!/^([0-9a-f]{8,16}|[0-9]{8,20})$/i.test(text)) return null;
  const classes = await ask<Table<unknown>>("classes", { by: "class", filter: text, limit: 1 }).catch(() => null);
  if (classes?.total !== 0) return null;
  const hexadecimal = id(`0x${text}`);
  if (!/^[0-9]+$/.test(text) || (await exists(hexadecimal))) return hexadecimal;
  return (await exists(id(text))) ? id(text) : hexadecimal;
}

/** Returns whether the heap has an object. */
function exists(id: string): Promise<boolean> {
  return ask("object", { id }).then(() => true, () => false);
}

/** Returns what is to be known about every view: errors, warnings, and what a file does not have. */
function notes(meta: Meta): Node[] {
  const file = kept();
  const warnings = meta.heap?.warnings ?? [];
  const made: Node[] = [];
  if (meta.error !== null) made.push(h("p", { class: "failed", role: "alert" }, name(meta.error)));
  if (meta.heap?.source === "hprof" && !meta.contents) made.push(h("p", { class: "soft" }, sentence(`Texts, values and pixels are hidden.${file ? " To include them in a file, use `--contents`." : ""}`)));
  const objects = meta.reachable?.count ?? meta.objects;
  if (file && file.objects < objects) made.push(h("p", { class: "soft" }, `This file has ${thousands(file.objects)} of ${counted(objects, "object")}. To see all objects, run `, h("code", null, name(file.command)), "."));
  if (meta.unreachable && total(meta.unreachable) > total(meta.reachable)) {
    const [lost, whole] = [total(meta.unreachable), total(meta.unreachable) + total(meta.reachable)].map(bytes);
    const end = meta.heap?.lacks_objects ? "Objects are missing from the dump, so others can look unreachable." : "The next GC frees it.";
    made.push(h("p", { class: "warning" }, `Most of this heap is unreachable: ${lost} of ${whole}. ${end}`));
  }
  made.push(...warnings.map((each) => h("p", { class: "warning" }, each.message, each.help ? ` ${each.help}` : "")));
  return made;
}
