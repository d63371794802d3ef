// The page as a whole: stores the state, derives scenes from it, and passes them to the parts of the page.
// Every step is an entry in the history of the browser, so the back button undoes it.

import { ChangesView } from "./changes";
import { folded, stackFolded, stackMarkdown, stackTsv, copyToClipboard, saveFile } from "./copy";
import { Details, tooltip, type Action } from "./details";
import { button, fill, h, name } from "./dom";
import { parsePattern, patternForName, formatFilter, type FilterKind, type Pattern } from "./filter";
import { Flame, labelOf } from "./flame";
import { answerFrom, ask, type Meta } from "./explore/api";
import { Explorer } from "./explore/explorer";
import type { Offline } from "./explore/offline";
import { encode, isPlace, setHeap } from "./explore/place";
import { hitsByFrame } from "./functions";
import { pathOf, type Cell, type Tree } from "./grow";
import { helpSheet } from "./help";
import { infoPage } from "./info";
import { libraryName, rawLabel, type Keys } from "./keys";
import { MemoryPanel } from "./memory";
import { recordings } from "./readings";
import { heapTitles, sanitize } from "./names";
import type { Header, Series } from "./format";
import type { Profile } from "./profile";
import { Stage, type Scene } from "./scene";
import { atPlace, decodeState, encodeState, type State, type Tab } from "./state";
import { endsOf, firstState, growth, availableTabs, isComparable, noGrowthReason, TAB_TITLES } from "./start";
import { SumView } from "./sumview";
import { summary, summedNote, type GrowthRow, type GrowthTotal } from "./summary";
import { ThemeSwitch } from "./theme";
import { Timeline } from "./timeline";
import { Toolbar } from "./toolbar";
import { TreeView, currentTheme } from "./treeview";
import { amount, counted, percent, thousands } from "./units";

export class App {
  readonly stage: Stage;
  readonly flame: Flame;
  scene: Scene | null = null;
  state: State;
  zoomed: Cell | null = null;
  selected: Cell | null = null;
  readonly search: HTMLInputElement;
  readonly toolbar: Toolbar;
  readonly theme: ThemeSwitch;
  readonly tabs: Tab[];
  readonly help = helpSheet();
  private readonly found = h("output", { class: "found" });
  private readonly live = h("div", { class: "off-screen", role: "status", "aria-live": "polite" });
  private readonly toast = h("div", { class: "toast", "aria-hidden": "true" });
  private readonly tip = h("div", { class: "tip", "aria-hidden": "true" });
  private readonly legend = h("ul", { class: "legend", "aria-label": "Colors by library" });
  private readonly panel = h("div", { class: "panel", role: "tabpanel", id: "heaptap-panel", tabindex: -1 });
  private readonly tabButtons = new Map<Tab, HTMLButtonElement>();
  private readonly details: Details;
  private readonly treeView: TreeView;
  private readonly functions: SumView;
  private readonly libraries: SumView;
  private readonly changes: ChangesView;
  readonly explorer: Explorer;
  /** Index of the Java heap that the explorer shows. */
  private explored = -1;
  private readonly timeline: Timeline;
  /** Memory over time, for each recording that contains readings. */
  readonly memories: MemoryPanel[];
  private grown: [GrowthRow[], GrowthTotal | null, string] = [[], null, ""];
  private cardsOf = -1;
  /** Last panel that was unfolded automatically. */
  private unfolded: MemoryPanel | undefined;
  private readonly cards = h("div");
  /** Note about summed callsites. */
  private readonly summed = h("div");
  private readonly javaPick: HTMLSelectElement;
  private readonly graph: HTMLElement;
  private infoElement: HTMLElement | null = null;
  private hits: Uint8Array | null = null;
  private start: State;
  private at = 0;
  private top = 0;
  private turn = 0;
  private matchAt = -1;
  private toastTimer = 0;
  /** Time from navigation to the first picture in ms. */
  readyAfter = 0;

  constructor(
    readonly root: HTMLElement,
    readonly header: Header,
    readonly profile: Profile,
    readonly javas: (() => Promise<Offline>)[],
  ) {
    this.stage = new Stage(profile);
    this.tabs = availableTabs(header);
    this.start = firstState(header, this.tabs);
    this.state = decodeState(location.hash, this.start, header.dumps.length, javas.length);
    this.search = h("input", {
      type: "search",
      placeholder: "Search  /",
      "aria-label": "Search functions: text, /expression/ or lib:text",
      spellcheck: "false",
      oninput: () => this.change({ search: this.search.value }, true),
      onkeydown: (event: KeyboardEvent) => this.searchKey(event),
    });
    this.toolbar = new Toolbar(profile, {
      change: (patch) => this.change(patch),
      zoom: (cell) => this.zoom(cell),
      undo: () => this.undo(),
      redo: () => this.redo(),
      save: () => this.save(),
    });
    this.flame = new Flame(this.stage, {
      zoom: (cell) => this.zoom(cell),
      select: (cell) => this.select(cell),
      hover: (box, x, y) => this.hover(box ? tooltip(profile, this.scene!, this.stage, box) : null, x, y),
      menu: (cell) => this.select(cell),
    });
    this.details = new Details(profile, this.stage, (action, cell, tree) => void this.act(action, cell, tree), (cell) => this.zoom(cell));
    this.treeView = new TreeView(profile, {
      select: (cell) => this.select(cell, true),
      zoom: (cell) => this.change({ tab: "flame", zoom: this.pathHashes(cell), selected: this.pathHashes(cell) }),
      direction: (view) => this.change({ view, zoom: [], selected: [] }),
    });
    const sums = {
      search: (key: number, keys: Keys) => this.find(key, keys),
      say: (text: string) => this.say(text),
    };
    this.functions = new SumView(profile, this.stage, { ...sums, by: (by) => this.change({ by }) }, ["function", "line", "package"]);
    this.libraries = new SumView(profile, this.stage, { ...sums, by: () => undefined }, ["library"]);
    this.changes = new ChangesView(profile, this.stage, (key) => this.find(key, this.stage.keysBy("function")));
    this.memories = recordings(header)
      .filter(({ timeline }) => timeline.processes.length > 0)
      .map((recorded) => new MemoryPanel(recorded, profile, { pick: (dump) => this.change({ dump, base: null }) }));
    this.timeline = new Timeline(profile, { pick: (dump, base) => this.change({ dump, base }) }, this.memories);
    this.theme = new ThemeSwitch(() => this.show());
    this.graph = h("div", { class: "graph" }, h("div", { class: "canvas-side" }, this.flame.element, this.legend), this.details.element);
    this.javaPick = h("select", { onchange: () => this.change({ tab: "java", java: Number(this.javaPick.value) }) });
    fill(this.javaPick, ...heapTitles(header.java ?? []).map((title, i) => h("option", { value: i }, sanitize(title))));
    const pick = javas.length > 1 ? h("label", { class: "labelled" }, h("span", { class: "soft" }, "Heap dump"), this.javaPick) : null;
    this.explorer = new Explorer(h("div"), h("div", { class: "bar" }, pick));
    this.explorer.element.firstElementChild!.append(this.explorer.search);
    this.build();
    addEventListener("popstate", (event) => this.restore(event.state as { at?: number } | null));
    addEventListener("beforeprint", () => this.theme.printing(true));
    addEventListener("afterprint", () => this.theme.printing(false));
  }

  private build(): void {
    const { header } = this;
    const native = header.dumps.length > 0;
    const dump = header.dumps[this.state.dump];
    const facts: string[] = [];
    if (native) facts.push(counted(header.dumps.length, "dump"));
    if (dump?.interval) facts.push(dump.interval === 1 ? "every allocation recorded" : `sampled every ${amount(dump.interval, "bytes")}`);
    const tabs = this.tabs.map((tab) => {
      const element = button(TAB_TITLES[tab], {
        role: "tab",
        id: `heaptap-tab-${tab}`,
        "aria-controls": "heaptap-panel",
        onclick: () => this.openTab(tab),
      });
      this.tabButtons.set(tab, element);
      if (tab === "info" && header.warnings.length > 0) element.append(" ", h("span", { class: "tag bad" }, header.warnings.length));
      return element;
    });
    const list = h("div", { class: "tabs", role: "tablist", "aria-label": "Pages" }, ...tabs);
    list.addEventListener("keydown", (event) => this.tabKey(event));
    fill(
      this.root,
      h(
        "header",
        { class: "top" },
        h("h1", null, name(header.title)),
        h("p", { class: "facts" }, ...facts.map((fact) => h("span", null, fact))),
        h("span", { class: "gap" }),
        native ? h("span", { class: "searching" }, this.search, this.found) : null,
        this.theme.button,
        button("?", { class: "round", title: "Keys and filters (?)", "aria-label": "Keys and filters", onclick: () => this.help.showModal() }),
      ),
      h("main", { class: "page" }, this.summed, this.cards, native ? this.timeline.element : null, ...this.memories.map(({ element }) => element), list, native ? this.toolbar.element : null, this.panel),
      this.live,
      this.toast,
      this.tip,
      this.help,
    );
  }

  /** Shows the first scene; resolves when it is drawn. */
  async begin(): Promise<void> {
    history.replaceState({ at: 0 }, "", location.hash || undefined);
    const { header } = this;
    this.fillCards([], null, header.dumps.length > 1 ? "Comparing the dumps…" : noGrowthReason(header, this.start.dump));
    await this.apply();
    this.readyAfter = performance.now();
    this.root.dataset["ready"] = "true";
    if (this.header.dumps.length > 1) {
      // Growth needs another pass over the callstacks, so it is computed after the first picture.
      setTimeout(() => {
        const grown = growth(this.profile, this.stage, this.start);
        this.fillCards(grown.rows, grown.total, grown.why);
      });
    }
  }

  private fillCards(rows: GrowthRow[], total: GrowthTotal | null, why: string): void {
    this.grown = [rows, total, why];
    this.cardsOf = this.state.dump;
    const series = this.header.series[this.header.dumps[this.start.dump]?.series ?? 0];
    fill(
      this.cards,
      summary(this.header, this.start.dump, this.state.dump, rows, total, why, {
        tab: (tab) => {
          this.change({ tab });
          this.panel.focus({ preventScroll: true });
          this.panel.scrollIntoView({ block: "start" });
        },
        leaks: () => {
          location.hash = encode({ view: "leaks" });
          this.panel.focus({ preventScroll: true });
          this.panel.scrollIntoView({ block: "start" });
        },
        grown: (row) => {
          const name = row.label;
          this.change({ tab: "flame", search: name, ...this.firstToLast(series) });
        },
        compare: () => this.change({ tab: "changes", ...this.firstToLast(series) }),
      }),
    );
  }

  private firstToLast(series: Series | undefined): Partial<State> {
    if (this.header.diff) return { dump: this.start.dump, base: this.start.base };
    const ends = endsOf(series);
    return ends ? { dump: ends[1], base: ends[0] } : {};
  }

  /** Opens a page: that of differences compares the shown dump with the first, the first with the last. */
  openTab(tab: Tab): void {
    const { dump, base } = this.state;
    const series = this.header.dumps[dump]?.series ?? 0;
    const own = this.header.series[series]?.dumps ?? [];
    const isUnset = tab === "changes" && base === null && isComparable(this.header, series);
    this.change({ tab, ...(isUnset && (dump === own[0] ? this.firstToLast(this.header.series[series]) : { base: own[0]! })) });
  }

  /** Changes the state, as a new history entry unless `replace` is set. */
  change(patch: Partial<State>, replace = false): void {
    this.state = { ...this.state, ...patch };
    this.hover(null, 0, 0);
    if (patch.dump !== undefined && patch.dump === this.state.base) this.state.base = null;
    const hash = encodeState(this.state, this.start);
    try {
      if (replace) {
        history.replaceState({ at: this.at }, "", hash);
      } else {
        this.at += 1;
        this.top = this.at;
        history.pushState({ at: this.at }, "", hash);
      }
    } catch {
      // Safari rejects more than 100 entries in 30 s; the page works without them.
    }
    void this.apply();
  }

  private restore(state: { at?: number } | null): void {
    if (typeof state?.at === "number") {
      this.at = state.at;
      this.top = Math.max(this.top, this.at);
    } else {
      this.at += 1;
      this.top = this.at;
      history.replaceState({ at: this.at }, "");
    }
    if (isPlace(location.hash)) this.state = atPlace(this.state, location.hash, this.start, this.javas.length);
    else this.state = decodeState(location.hash, this.start, this.header.dumps.length, this.javas.length);
    void this.apply();
  }

  undo(): void {
    if (this.at > 0) history.back();
  }

  redo(): void {
    if (this.at < this.top) history.forward();
  }

  private async apply(): Promise<void> {
    const turn = ++this.turn;
    if (this.header.dumps.length === 0) {
      this.show();
      return;
    }
    const { state } = this;
    const scene = await this.stage.scene(state);
    const hits = await this.matchSearch(scene, state.search);
    if (turn !== this.turn) return;
    this.scene = scene;
    this.hits = hits;
    this.zoomed = scene.callers ? scene.tree.root : (scene.tree.find(state.zoom) ?? scene.tree.root);
    this.selected = state.selected.length > 0 ? scene.tree.find(state.selected) : null;
    if (!this.selected && state.selected.length > 0 && scene.callers) this.selected = scene.callers.find(state.selected);
    this.show();
  }

  /** Returns the matches of a search by key; null without a search. */
  private async matchSearch(scene: Scene, text: string): Promise<Uint8Array | null> {
    this.search.removeAttribute("aria-invalid");
    if (!text.trim()) {
      this.found.textContent = "";
      return null;
    }
    const pattern = parsePattern(text);
    if ("error" in pattern) return this.showSearchError(pattern.error);
    let names: Uint8Array;
    try {
      names = await this.stage.matcher.match(pattern);
    } catch (error) {
      return this.showSearchError((error as Error).message);
    }
    const frames = hitsByFrame(this.profile, names, pattern.library);
    const sum = this.stage.matchedBy(scene, frames);
    const whole = scene.shown.after.sum;
    const hits = new Uint8Array(scene.keys.count);
    for (let frame = 0; frame < frames.length; frame++) if (frames[frame]) hits[scene.keys.ofFrame[frame]!] = 1;
    const functions = names.reduce((count, hit) => count + hit, 0);
    const noun = pattern.library ? (functions === 1 ? "library" : "libraries") : functions === 1 ? "function" : "functions";
    this.found.textContent = functions === 0 ? "no matches" : `${amount(sum, scene.unit)} (${percent(sum, whole)}) in ${thousands(functions)} ${noun}`;
    this.found.dataset["value"] = String(sum);
    return hits;
  }

  private showSearchError(reason: string): null {
    this.search.setAttribute("aria-invalid", "true");
    this.found.textContent = reason;
    delete this.found.dataset["value"];
    return null;
  }

  /** Unfolds the panel of the recording of the shown dump; other panels do not change. */
  private showMemory(dump: number): void {
    const own = this.memories.find((each) => each.has(dump)) ?? this.memories[0];
    if (this.memories.length > 1 && own !== this.unfolded) {
      if (this.unfolded) own!.element.open = true;
      else for (const each of this.memories) each.element.open = each === own;
      this.unfolded = own;
    }
    for (const each of this.memories) each.show(dump);
  }

  /** Shows the current scene. */
  show(): void {
    const { state, scene } = this;
    const tab = this.tabs.includes(state.tab) ? state.tab : this.tabs[0]!;
    for (const [each, element] of this.tabButtons) {
      element.setAttribute("aria-selected", String(each === tab));
      element.tabIndex = each === tab ? 0 : -1;
    }
    this.panel.setAttribute("aria-labelledby", `heaptap-tab-${tab}`);
    this.panel.dataset["tab"] = tab;
    if (document.activeElement !== this.search) this.search.value = state.search;
    const stacks = tab !== "info" && tab !== "java";
    this.toolbar.element.hidden = !stacks;
    if (scene && this.zoomed) {
      this.toolbar.show(scene, this.zoomed, this.at > 0, this.at < this.top);
      this.timeline.show(state.dump, state.base, this.profile.dumps[state.dump]!.facts.measures[scene.measure]!.name);
    }
    this.showMemory(state.dump);
    fill(this.summed, summedNote(this.header, state.dump));
    if (this.memories.length > 0 && this.cardsOf !== state.dump) this.fillCards(...this.grown);
    this.panelOf(tab);
    if (tab === "flame" && scene && this.zoomed) {
      this.flame.show(scene, this.zoomed, this.selected, this.hits, currentTheme());
      this.details.show(scene, this.treeOf(this.selected), this.selected);
      this.showLegend(scene);
    } else if (tab === "tree" && scene) {
      this.treeView.show(scene, this.selected);
    } else if (tab === "functions" && scene) {
      this.functions.show(scene, state.by === "library" ? "function" : state.by);
    } else if (tab === "libraries" && scene) {
      this.libraries.show(scene, "library");
    } else if (tab === "changes" && scene) {
      this.changes.show(scene);
    } else if (tab === "java") {
      void this.explore(state.java);
    }
    this.announce(tab);
  }

  private panelOf(tab: Tab): void {
    this.javaPick.value = String(this.state.java);
    const parts: Record<Tab, () => Node> = {
      flame: () => this.graph,
      tree: () => this.treeView.element,
      functions: () => this.functions.element,
      libraries: () => this.libraries.element,
      changes: () => this.changes.element,
      java: () => this.explorer.element,
      info: () => (this.infoElement ??= infoPage(this.header, (text) => this.say(text))),
    };
    const part = parts[tab]();
    if (this.panel.firstChild !== part) this.panel.replaceChildren(part);
  }

  /** Shows the place in the address of a Java heap; without one, an overview. */
  private async explore(at: number): Promise<void> {
    if (at !== this.explored) {
      let file: Offline;
      try {
        file = await this.javas[at]!();
      } catch (error) {
        this.explorer.fail(`Cannot read the answers about this heap: ${String(error)}.`);
        return;
      }
      if (this.state.java !== at) return;
      this.explored = at;
      this.explorer.forget();
      setHeap(at === this.start.java ? null : at);
      answerFrom(file);
      this.explorer.meta = await ask<Meta>("meta");
    }
    await this.explorer.show(isPlace(location.hash) ? location.hash : encode({ view: "overview" }));
  }

  private announce(tab: Tab): void {
    const { scene } = this;
    const words = [TAB_TITLES[tab]];
    if (scene && tab === "flame") {
      if (this.selected?.parent) words.push(`${labelOf(scene, this.selected)} ${amount(this.selected.after, scene.unit)}`);
      else words.push(`${amount(scene.tree.root.after, scene.unit)} shown`);
      if (this.found.textContent) words.push(`search: ${this.found.textContent}`);
    }
    const text = words.join(", ");
    if (this.live.textContent !== text) this.live.textContent = text;
  }

  private showLegend(scene: Scene): void {
    if (scene.shown.before) {
      const entry = (kind: string, words: string) => h("li", null, h("i", { class: `swatch ${kind}`, "aria-hidden": "true" }), words);
      fill(this.legend, entry("more", "increase (+, rising strokes)"), entry("less", "decrease (−, falling strokes)"), entry("noise", "95% interval includes 0"));
      return;
    }
    fill(
      this.legend,
      ...scene.palette.legend(currentTheme()).map(({ name: library, color, share }) => {
        const swatch = h("i", { class: "swatch", "aria-hidden": "true" });
        swatch.style.background = color;
        return h("li", null, swatch, name(library), h("span", { class: "soft" }, ` ${percent(share, 1)}`));
      }),
    );
  }

  treeOf(cell: Cell | null): Tree {
    const { scene } = this;
    let root = cell;
    while (root?.parent) root = root.parent;
    return root !== null && scene?.callers?.root === root ? scene.callers : scene!.tree;
  }

  pathHashes(cell: Cell): number[] {
    return pathOf(cell).map((at) => this.scene!.keys.hash(at.key));
  }

  zoom(cell: Cell): void {
    const path = this.pathHashes(cell);
    if (this.scene?.callers) return this.select(cell);
    this.change({ zoom: path, selected: path });
  }

  select(cell: Cell, replace = true): void {
    this.change({ selected: this.pathHashes(cell) }, replace);
  }

  /** Searches for a row of a table in the graph. */
  private find(key: number, keys: Keys): void {
    const label = rawLabel(this.profile, keys, key);
    const text = keys.grouping === "library" ? `lib:${label}` : keys.grouping === "package" ? label : patternForName(label).source;
    this.change({ tab: "flame", search: text, zoom: [], selected: [] });
  }

  /** Returns the pattern that matches a box. */
  private patternFor(cell: Cell): Pattern {
    const { scene, profile } = this;
    const keys = scene!.keys;
    const label = rawLabel(profile, keys, cell.key);
    if (keys.grouping === "library") return this.libraryPattern(cell);
    if (keys.grouping === "package") return parsePattern(label) as Pattern;
    return patternForName(label);
  }

  private libraryPattern(cell: Cell): Pattern {
    const { scene, profile } = this;
    const id = profile.frames.function[scene!.keys.frameOf[cell.key]!]!;
    const path = profile.libraries[profile.functions.library[id]!]?.path ?? "";
    return parsePattern(`lib:${path || libraryName(profile, profile.functions.library[id]!)}`) as Pattern;
  }

  /** Applies an action to a box. */
  async act(action: Action | "HF lib", cell: Cell, tree: Tree): Promise<void> {
    const { scene, profile } = this;
    if (!scene || cell.key < 0) return;
    if (action === "zoom") return this.zoom(cell);
    if (action === "folded" || action === "markdown" || action === "tsv") {
      const write = { folded: stackFolded, markdown: stackMarkdown, tsv: stackTsv }[action];
      const copied = await copyToClipboard(write(profile, scene, tree, cell));
      return this.say(copied ? "Callstack copied" : "Cannot copy: the browser denied access to the clipboard");
    }
    const kind: FilterKind = action === "HF lib" ? "HF" : action;
    const pattern = action === "HF lib" ? this.libraryPattern(cell) : this.patternFor(cell);
    const filters = [...this.state.filters, formatFilter({ kind, pattern })];
    this.change({ filters, zoom: [], selected: [], view: kind === "P" ? "sandwich" : this.state.view });
  }

  /** Selects the next or previous match of the search. */
  nextMatch(step: number): void {
    const matches = this.flame.matches();
    if (matches.length === 0) return this.say("No match is visible");
    const now = this.selected ? matches.indexOf(this.selected) : -1;
    this.matchAt = ((now >= 0 ? now : this.matchAt) + step + matches.length) % matches.length;
    const cell = matches[this.matchAt]!;
    this.select(cell);
    requestAnimationFrame(() => this.flame.reveal(cell));
    this.say(`Match ${this.matchAt + 1} of ${matches.length}`);
  }

  private searchKey(event: KeyboardEvent): void {
    if (event.key === "Enter") {
      event.preventDefault();
      this.nextMatch(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      event.stopPropagation();
      this.search.value = "";
      this.change({ search: "" }, true);
      this.flame.focus();
    }
  }

  private tabKey(event: KeyboardEvent): void {
    const at = this.tabs.indexOf(this.state.tab);
    const steps: Record<string, number> = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: this.tabs.length - 1 };
    const to = steps[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const tab = this.tabs[(to + this.tabs.length) % this.tabs.length]!;
    // Without a choice of dumps: the key might only pass this tab.
    this.change({ tab });
    this.tabButtons.get(tab)?.focus();
  }

  private save(): void {
    if (!this.scene) return;
    const text = folded(this.profile, this.scene);
    const file = this.header.title.replace(/[^\w.-]+/g, "_").slice(0, 60) || "report";
    saveFile(`${file}.folded`, text);
    this.say("Shown callstacks saved");
  }

  private hover(content: Node[] | null, x: number, y: number): void {
    const { tip } = this;
    if (!content) {
      tip.classList.remove("on");
      return;
    }
    fill(tip, ...content);
    tip.classList.add("on");
    const { offsetWidth, offsetHeight } = tip;
    const left = Math.min(x + 14, innerWidth - offsetWidth - 8);
    const top = y + 18 + offsetHeight > innerHeight ? y - offsetHeight - 10 : y + 18;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${Math.max(8, top)}px`;
  }

  /** Shows a short message, also to screen readers. */
  say(text: string): void {
    this.toast.textContent = text;
    this.toast.classList.add("on");
    this.live.textContent = text;
    clearTimeout(this.toastTimer);
    this.toastTimer = window.setTimeout(() => this.toast.classList.remove("on"), 2500);
  }
}
