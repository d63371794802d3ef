// The page of `heaptap explore`: answers come from the server that sent it, while it reads the heap.

import { fill, h, name, put } from "../dom";
import { ThemeSwitch } from "../theme";
import { ApiError, ask, type HeapFacts, type Meta } from "./api";
import { Explorer } from "./explorer";
import { encode } from "./place";

/** Interval of requests for the state, in ms: often while the heap is read, then to show that the page is open. */
const SOON = 250;
const BEAT = 20_000;

class Page {
  private readonly title = h("h1", null, "Java heap");
  private readonly facts = h("span", { class: "facts" });
  private readonly dumps = h("span");
  private readonly state = h("span", { class: "tag", role: "status" });
  private readonly explorer = new Explorer(h("main"));
  private beating = 0;

  constructor(root: HTMLElement) {
    const theme = new ThemeSwitch(() => undefined);
    put(root, h("header", { class: "top" }, this.title, this.dumps, this.facts, this.state, h("span", { class: "gap" }), this.explorer.search, theme.button), this.explorer.element);
    window.addEventListener("hashchange", () => void this.explorer.show());
    document.addEventListener("keydown", (event) => {
      if (this.explorer.key(event)) event.preventDefault();
    });
    void this.beat();
  }

  /** Asks for the state, again and again. */
  private async beat(): Promise<void> {
    let wait = BEAT;
    try {
      const meta = await ask<Meta>("meta");
      const known = this.explorer.meta;
      const isFirst = known?.heap == null && meta.heap !== null;
      const isSized = known?.reachable == null && meta.reachable !== null;
      const isCompared = known?.before == null && meta.before !== null;
      const isFailed = known?.error == null && meta.error !== null;
      this.explorer.meta = meta;
      this.describe(meta);
      if (isFirst || isSized || isCompared || isFailed) void this.explorer.show();
      if ((meta.heap === null && meta.error === null) || meta.step !== "") wait = SOON;
    } catch (error) {
      this.state.textContent = error instanceof ApiError ? error.message : "heaptap has ended; start `heaptap explore` again";
      this.state.className = "tag bad";
      if (!(error instanceof ApiError)) return;
    }
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
    if (heap.dumps < 2) return [];
    const options = Array.from({ length: heap.dumps }, (_, at) => h("option", { value: at + 1, selected: at + 1 === heap.number }, `Dump ${at + 1} of ${heap.dumps}`));
    const choice = h("select", { "aria-label": "Dump" }, ...options);
    choice.addEventListener("change", () => void this.choose(Number(choice.value)));
    return [choice];
  }

  private async choose(number: number): Promise<void> {
    this.explorer.forget();
    await ask("show", { number });
    location.hash = encode({ view: "overview" });
    clearTimeout(this.beating);
    void this.beat();
  }

}

const root = document.getElementById("heaptap-app");
if (root) {
  document.documentElement.classList.add("heaptap-live");
  Object.defineProperty(root, "heaptap", { value: new Page(root) });
}
