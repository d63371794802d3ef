// The page of `heaptap explore`: answers come from the server that sent it, while it reads the heap.

import { button, fill, h, name, put } from "../dom";
import { basename } from "../names";
import { ThemeSwitch } from "../theme";
import { ApiError, ask, askAbout, messageOf, onHeapChange, type HeapFacts, type Meta } from "./api";
import { Explorer, isTyping } from "./explorer";
import { keyHelp } from "./help";
import { encode } from "./place";
import { sqlView } from "./sql";

/** Intervals of requests for the state in ms: while the heap is read, after a failure, and to show that
 * the page is open. */
const READING_INTERVAL = 250;
const RETRY_INTERVAL = 2000;
const OPEN_INTERVAL = 20_000;
/** Number of failures after which heaptap has ended. */
const MAX_FAILURES = 3;
/** Delay from the last choice of a dump to its reading in ms: arrow keys choose every dump on their way. */
const CHOICE_DELAY = 400;

class Page {
  private readonly title = h("h1", null, "Java heap");
  private readonly facts = h("span", { class: "facts" });
  private readonly dumps = h("select", { "aria-label": "Dump", hidden: true });
  private readonly state = h("span", { class: "tag", role: "status" });
  private readonly explorer = new Explorer(h("main"), null, { sql: (place, _meta, signal) => sqlView(place, signal) });
  private timer = 0;
  /** Timer of a choice that is not sent yet; 0 if there is none. */
  private choosing = 0;
  /** Why the last choice has no effect; empty if it has. */
  private refusal = "";
  private failures = 0;
  /** Number of the last request for the state; answers to earlier ones are late. */
  private turn = 0;
  /** Heap that the header describes. */
  private described = "";

  constructor(root: HTMLElement) {
    const theme = new ThemeSwitch(() => undefined);
    const { opener, dialog } = keyHelp();
    const skip = button("Skip to the content", { class: "skip", onclick: () => this.explorer.focus() });
    put(root, h("header", { class: "top" }, skip, this.title, this.dumps, this.facts, this.state, h("span", { class: "gap" }), this.explorer.search, theme.button, opener), this.explorer.element, dialog);
    this.dumps.addEventListener("change", () => {
      const number = Number(this.dumps.value);
      clearTimeout(this.choosing);
      this.choosing = window.setTimeout(() => void this.choose(number), CHOICE_DELAY);
    });
    window.addEventListener("hashchange", () => void this.explorer.show());
    document.addEventListener("keydown", (event) => {
      if (dialog.open) return;
      const isHelp = event.key === "?" && !isTyping(event);
      if (isHelp) dialog.showModal();
      if (isHelp || this.explorer.key(event)) event.preventDefault();
    });
    onHeapChange(() => void this.beat());
    void this.explorer.show();
    void this.beat();
  }

  /** Asks for the state, again and again. */
  private async beat(): Promise<void> {
    const turn = ++this.turn;
    clearTimeout(this.timer);
    let wait: number;
    try {
      const meta = await ask<Meta>("meta");
      if (turn !== this.turn) return;
      this.failures = 0;
      this.receive(meta);
      const isReading = (meta.heap === null && meta.error === null) || meta.step !== "";
      wait = isReading ? READING_INTERVAL : Math.min(OPEN_INTERVAL, (1000 * (meta.idle_seconds ?? Infinity)) / 3);
    } catch (error) {
      if (turn !== this.turn) return;
      this.failures += 1;
      const hasEnded = this.failures >= MAX_FAILURES;
      wait = hasEnded ? OPEN_INTERVAL : RETRY_INTERVAL;
      if (error instanceof ApiError) this.say(error.message, true);
      else if (hasEnded) this.say("heaptap has ended; start it again", true);
    }
    this.timer = window.setTimeout(() => void this.beat(), wait);
  }

  private receive(meta: Meta): void {
    const known = this.explorer.meta;
    const isOther = known?.generation !== meta.generation || known?.heap?.number !== meta.heap?.number;
    if (isOther) {
      this.refusal = "";
      askAbout(meta.generation);
      this.explorer.forget();
    }
    const isFailed = known?.error == null && meta.error !== null;
    const isLater = (known?.reachable == null && meta.reachable !== null) || (known?.before == null && meta.before !== null);
    this.explorer.meta = meta;
    this.describe(meta);
    if (isOther || isFailed) void this.explorer.show();
    else if (isLater) void this.explorer.refresh();
  }

  /** Shows what heaptap does; an empty text hides it. */
  private say(text: string, isBad = false): void {
    if (this.state.textContent !== text) this.state.textContent = text;
    this.state.className = isBad ? "tag bad" : "tag";
    this.state.hidden = text === "";
  }

  private describe(meta: Meta): void {
    const { heap, before } = meta;
    this.say(this.refusal || meta.step, this.refusal !== "");
    const described = JSON.stringify([heap, before, meta.generation]);
    if (!heap || described === this.described) return;
    this.described = described;
    this.dumps.hidden = heap.dumps < 2;
    // The options of a list that is open stay.
    if (this.dumps.length !== heap.dumps) fill(this.dumps, ...Array.from({ length: heap.dumps }, (_, at) => h("option", { value: at + 1 }, `Dump ${at + 1} of ${heap.dumps}`)));
    if (this.choosing === 0) this.dumps.value = String(heap.number);
    const title = before ? `${dumpTitle(before)} → ${dumpTitle(heap)}` : (heap.process ?? basename(heap.path));
    const words = [before ? heap.process : null, heap.path, heap.label, heap.time, heap.source === "hprof" ? "HPROF" : "heap graph"];
    fill(this.title, name(title));
    fill(this.facts, ...words.filter((word) => word !== null).map((word) => h("span", null, name(word!))));
    document.title = `${title} – heaptap`;
  }

  private async choose(number: number): Promise<void> {
    this.choosing = 0;
    this.refusal = "";
    this.say(this.explorer.meta?.step ?? "");
    // A heap that is shown would be read again.
    const current = this.explorer.meta?.heap?.number;
    if (number === current) return;
    try {
      await ask("show", { number });
    } catch (error) {
      // The page draws the heap that another page chose.
      if (error instanceof ApiError && error.isOtherHeap) return;
      this.refusal = messageOf(error);
      this.say(this.refusal, true);
      if (current !== undefined && this.choosing === 0) this.dumps.value = String(current);
      return;
    }
    this.described = "";
    this.explorer.forget();
    const overview = encode({ view: "overview" });
    if (location.hash === overview) void this.explorer.show();
    else location.hash = overview;
    void this.beat();
  }
}

/** Returns the short name of a dump: its file, and its label or number if the file has several. */
function dumpTitle(heap: HeapFacts): string {
  const which = heap.label ?? (heap.dumps > 1 ? String(heap.number) : null);
  return basename(heap.path) + (which === null ? "" : ` @${which}`);
}

const root = document.getElementById("heaptap-app");
if (root) {
  document.documentElement.classList.add("heaptap-live");
  Object.defineProperty(root, "heaptap", { value: new Page(root) });
}
