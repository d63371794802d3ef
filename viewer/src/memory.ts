// Memory of processes over time, below the dumps and on the same axis: memory by kind, totals, the Java
// heap with its collections, and the native heap with unreleased bytes from the profile. A cross-hair
// runs through all lanes, moved by mouse or keyboard. A table contains the same readings.

import { Axis, Row } from "./axis";
import { button, fill, h, name, svg } from "./dom";
import { estimate } from "./estimate";
import type { RecordedFacts, TimelineFacts } from "./format";
import { heapOf, unreleasedDumps, rangeOf, type UnreleasedDump } from "./held";
import { draw, maxValue, type Lane, type Series } from "./lanes";
import { describeCollection, momentsTable } from "./moments";
import { dumpName, sanitize } from "./names";
import type { Profile } from "./profile";
import { capturesOf, groups, hasLabel, lifeAt, nearest, PARTS, runs, lastRowAt, value, valueAt, type Captured, type Group, type RowsKind } from "./readings";
import { amount, bytes, counted, duration } from "./units";

export interface MemoryEvents {
  pick(dump: number): void;
}

/** Maximum distance of a click to a line in px. */
const CLICK_DISTANCE_PX = 6;
/** Maximum number of dumps for which intervals are computed. */
const MAX_INTERVALS = 60;

export class MemoryPanel {
  readonly element: HTMLDetailsElement;
  readonly axis: Axis;
  private readonly all: Group[];
  private group: Group;
  private readonly stage = h("div", { class: "lanes" });
  /** Redrawn part of the stage; the rest stays, to keep the focus. */
  private readonly drawn = h("div");
  private readonly glass: HTMLElement;
  private readonly cross = h("div", { class: "cross", "aria-hidden": "true" });
  private readonly brush = h("div", { class: "brush", "aria-hidden": "true", hidden: true });
  private readonly moment = h("output", { class: "moment" });
  private readonly event = h("p", { class: "event hint" });
  private readonly values = new Map<Series, HTMLElement>();
  private readonly table = h("details", { class: "readings" }, h("summary", null, "Readings as a table"));
  private lanes: Lane[] = [];
  private unreleased: UnreleasedDump[] = [];
  private captured: Captured[] = [];
  private shownDump = -1;
  private cursor: number;
  /** Other end of the selected range in ms. */
  private anchor: number | null = null;
  private dragged = false;

  private readonly timeline: TimelineFacts;

  constructor(
    private readonly recorded: RecordedFacts,
    private readonly profile: Profile,
    private readonly events: MemoryEvents,
  ) {
    const { timeline, name: title } = recorded;
    this.timeline = timeline;
    const dumps = profile.header.dumps.slice(recorded.from, recorded.to);
    const times = dumps.map((dump) => dump.time_ms).filter((ms) => ms !== null);
    const first = Math.min(timeline.from_ms, ...times);
    this.axis = new Axis(first, Math.max(timeline.to_ms, first + 1, ...times));
    this.axis.onChange(() => this.draw());
    this.all = groups(timeline, dumps);
    this.group = this.all[0]!;
    this.cursor = this.axis.last;
    this.glass = h("div", {
      class: "glass",
      tabindex: 0,
      role: "slider",
      "aria-label": `Time in the recording${title && ` ${sanitize(title)}`}. Use the arrow keys to move between readings, Page Up and Page Down to move between events, Shift to select a time range, Enter to zoom in on it or to show the nearest dump, plus and minus to zoom.`,
    });
    const pick = h("select", { "aria-label": "Process", onchange: () => this.choose(this.all[Number(pick.value)]!) });
    fill(pick, ...this.all.map((group, i) => h("option", { value: i }, sanitize(group.name))));
    const head = h(
      "div",
      { class: "memory-head" },
      this.all.length > 1 ? pick : null,
      this.moment,
      h("span", { class: "gap" }),
      button("−", { class: "round", "aria-label": "Zoom out in time", title: "Zoom out (-)", onclick: () => this.axis.zoom(2, this.cursor) }),
      button("+", { class: "round", "aria-label": "Zoom in at the cursor", title: "Zoom in (+)", onclick: () => this.axis.zoom(0.5, this.cursor) }),
      button("All", { title: "Show the whole recording (0)", onclick: () => this.axis.all() }),
    );
    this.element = h("details", { class: "memory", open: true }, h("summary", null, h("h2", null, "Memory over time", title ? h("span", { class: "soft" }, " of ", name(title)) : null)), head, this.stage, this.event, this.missingReadings(), this.table);
    fill(this.stage, this.drawn, this.brush, this.cross, this.glass);
    this.bind();
  }

  /** Returns whether a dump belongs to this recording. */
  has(dump: number): boolean {
    return this.recorded.from <= dump && dump < this.recorded.to;
  }

  /** Marks the shown dump if it belongs to this recording. */
  show(place: number): void {
    const dump = this.has(place) ? place : -1;
    const facts = this.profile.header.dumps[dump];
    const before = this.shownDump;
    this.shownDump = dump;
    const group = this.all.find(({ lives }) => lives.some(({ pid }) => pid === facts?.pid)) ?? this.group;
    if (facts?.time_ms !== null && facts?.time_ms !== undefined && before !== dump) this.cursor = facts.time_ms;
    if (group !== this.group || this.lanes.length === 0) this.choose(group);
    else if (before !== dump) {
      if (facts && this.profile.header.dumps[before]?.heap !== facts.heap) this.choose(group);
      else this.draw();
    }
  }

  private choose(group: Group): void {
    this.group = group;
    const pick = this.element.querySelector("select");
    if (pick) pick.value = String(this.all.indexOf(group));
    const { lives } = group;
    const { profile, recorded } = this;
    this.unreleased = unreleasedDumps(profile, recorded, lives, heapOf(profile, recorded, lives, profile.header.dumps[this.shownDump]));
    const pids = lives.map(({ pid }) => pid);
    this.captured = capturesOf(this.timeline, pids, profile.header.dumps.slice(recorded.from, recorded.to));
    this.lanes = this.lanesOf(group);
    this.table.replaceChildren(this.table.firstChild!);
    if (this.table.open) this.fillTable();
    this.draw();
  }

  private lanesOf(group: Group): Lane[] {
    const series = (kind: RowsKind, column: string, label: string, style: string, more: Partial<Series> = {}): Series => ({
      key: `${kind}.${column}`,
      label,
      style,
      unit: "bytes",
      runs: runs(group, kind, column),
      at: (ms) => valueAt(group, kind, column, kind === "parts" ? (this.captureAt(ms)?.read ?? ms) : ms),
      ...more,
    });
    const some = (all: Series[]): Series[] => all.filter((each) => each.runs.length > 0);
    const live = series("collections", "live", "live set after a collection", "s-live", { dots: true, at: (ms) => this.afterCollection("live", ms) });
    const java: Lane = {
      title: "Java heap",
      height: 74,
      stacked: [],
      lines: some([
        series("collections", "total", "heap size after a collection", "s-total", { at: (ms) => this.afterCollection("total", ms) }),
        series("java_heap", "allocated", "allocated, including unreachable objects", "s-allocated"),
        series("parts", "java", "private dirty pages", "s-java"),
        live,
      ]),
      marks: this.marks(),
      bands: this.timeline.ours
        .filter(({ pid }) => pid === 0 || group.lives.some((life) => life.pid === pid))
        .map(({ ms, until_ms }) => [ms, until_ms ?? ms]),
    };
    const unreleased: Series = {
      key: "held",
      label: "unreleased, estimated",
      style: "s-held",
      unit: "bytes",
      dots: true,
      runs: this.unreleasedRuns(),
      bars: this.unreleasedBars(),
      at: (ms) => this.unreleasedNear(ms),
    };
    const all: Lane[] = [
      {
        title: "By kind",
        height: 96,
        stacked: some(PARTS.map(([column, , words]) => series("parts", column, words, `p-${column}`))),
        lines: [],
        marks: [],
        bands: [],
      },
      {
        title: "Total",
        height: 62,
        stacked: [],
        lines: some([
          series("resident", "rss", "RSS", "s-rss"),
          series("parts", "total_pss", "PSS", "s-pss"),
          series("resident", "anon", "anonymous", "s-anon"),
          series("resident", "swap", "swapped", "s-swap"),
          series("graphics", "bytes", "GPU", "s-gpu"),
        ]),
        marks: [],
        bands: [],
        note: this.exceedsRss() ? "PSS includes swapped memory and the graphics driver's memory; RSS does not" : "",
      },
      java,
      {
        title: "Native heap",
        height: 62,
        stacked: [],
        lines: some([
          series("parts", "native", "private dirty pages", "s-native"),
          series("parts", "native_alloc", "allocated, as counted by the allocator", "s-alloc", { dots: true }),
          unreleased,
        ]),
        marks: [],
        bands: [],
      },
    ];
    return all.filter((lane) => lane.lines.length + lane.stacked.length + lane.marks.length > 0);
  }

  /** Returns whether PSS is larger than RSS somewhere, which needs an explanation. */
  private exceedsRss(): boolean {
    return this.group.lives.some(({ parts, resident }) =>
      parts.ms.some((ms, row) => {
        const [pss, rss] = [value(parts, "total_pss", row), value(resident, "rss", nearest(resident, ms))];
        return pss !== null && rss !== null && pss > rss;
      }),
    );
  }

  /** Returns the capture of the label or dump near a time; null if there is none, or at a reading. */
  private captureAt(ms: number): Captured | null {
    if (lifeAt(this.group, ms)?.parts.ms.includes(ms)) return null;
    const x = (at: number): number => this.axis.x(at, this.width);
    const near = this.captured.filter((each) => Math.abs(x(each.ms) - x(ms)) <= CLICK_DISTANCE_PX);
    return near.sort((a, b) => Math.abs(a.ms - ms) - Math.abs(b.ms - ms))[0] ?? null;
  }

  private unreleasedRuns(): [number, number][][] {
    const lives = new Map<number, [number, number][]>();
    for (const { ms, bytes: unreleased, dump } of this.unreleased) lives.set(dump.series, [...(lives.get(dump.series) ?? []), [ms, unreleased]]);
    return [...lives.values()];
  }

  private unreleasedBars(): Map<number, [number, number]> {
    const bars = new Map<number, [number, number]>();
    if (this.unreleased.length > MAX_INTERVALS) return bars;
    for (const { place, ms } of this.unreleased) {
      const range = rangeOf(this.profile, place);
      if (range && !range.exact) bars.set(ms, [range.low, range.high]);
    }
    return bars;
  }

  private unreleasedAt(ms: number): UnreleasedDump | null {
    const life = lifeAt(this.group, ms);
    const own = this.unreleased.filter(({ dump }) => !life || dump.pid === life.pid);
    return own.reduce<UnreleasedDump | null>((best, each) => (!best || Math.abs(each.ms - ms) < Math.abs(best.ms - ms) ? each : best), null);
  }

  /** Returns the unreleased bytes of the nearest dump; null before the first and after the last dump, because memory changes. */
  private unreleasedNear(ms: number): number | null {
    const nearest = this.unreleasedAt(ms);
    if (!nearest) return null;
    const run = this.unreleased.filter(({ dump }) => dump.series === nearest.dump.series);
    const near = this.axis.ms(CLICK_DISTANCE_PX, this.width) - this.axis.ms(0, this.width);
    return run[0]!.ms - near <= ms && ms <= run[run.length - 1]!.ms + near ? nearest.bytes : null;
  }

  /** Returns a value of the last collection. */
  private afterCollection(column: string, ms: number): number | null {
    const rows = lifeAt(this.group, ms)?.collections;
    if (!rows) return null;
    for (let row = lastRowAt(rows, ms); row >= 0; row--) {
      const found = value(rows, column, row);
      if (found !== null) return found;
    }
    return null;
  }

  private marks(): Lane["marks"] {
    const all = this.group.lives.flatMap(({ collections: rows }) =>
      rows.ms.map((ms, row) => ({ ms, pause: value(rows, "longest_pause_ns", row) ?? 0, ours: value(rows, "ours", row) === 1 })),
    );
    const most = Math.max(1, ...all.map(({ pause }) => pause));
    return all.map(({ ms, pause, ours }) => ({ ms, ours, size: Math.sqrt(pause / most) }));
  }

  private get width(): number {
    return this.stage.clientWidth || 800;
  }

  private draw(): void {
    // A folded panel does not have a width; the resize observer draws it after unfolding.
    if (!this.element.open) return;
    const { width, axis } = this;
    this.values.clear();
    const parts: Node[] = [];
    for (const lane of this.lanes) {
      const entries = [...lane.stacked, ...lane.lines].map((series) => {
        const shownValue = h("b", null);
        this.values.set(series, shownValue);
        return h("li", null, h("i", { class: `key ${lane.stacked.includes(series) ? "area" : "line"} ${series.style}`, "aria-hidden": "true" }), series.label, " ", shownValue);
      });
      if (lane.marks.length > 0) {
        const ours = lane.marks.filter((mark) => mark.ours).length;
        const own = lane.marks.length - ours;
        const words = [own ? `▲ ${counted(own, "collection")}` : "", ours ? `△ ${counted(ours, "collection")} caused by heaptap` : ""].filter(Boolean);
        entries.push(h("li", null, words.join(", ")));
      }
      if (lane.note) entries.push(h("li", { class: "soft" }, lane.note));
      if (lane.bands.length > 0) entries.push(h("li", null, h("i", { class: "key area ours-key", "aria-hidden": "true" }), "heaptap activity"));
      parts.push(
        h(
          "div",
          { class: "lane" },
          h("div", { class: "lane-head" }, h("p", { class: "lane-title" }, h("b", null, lane.title), h("span", { class: "soft" }, ` up to ${bytes(maxValue(lane))}`)), h("ul", { class: "lane-legend" }, ...entries)),
          draw(lane, axis, width),
        ),
      );
    }
    parts.push(this.ticks(width));
    fill(this.drawn, this.names(width), ...parts, this.rules(width));
    this.point(this.cursor, false);
  }

  private ticks(width: number): HTMLElement {
    const { axis } = this;
    const row = h("div", { class: "ticks", "aria-hidden": "true" });
    for (const ms of axis.ticks(Math.max(2, Math.floor(width / 110)))) {
      const tick = h("span", null, ms === axis.first ? "0" : `+${duration((ms - axis.first) * 1e6)}`);
      tick.style.left = `${axis.x(ms, width)}px`;
      row.append(tick);
    }
    return row;
  }

  /** Returns names of dumps and labels, without those of the dumps on the timeline above. */
  private names(width: number): HTMLElement | null {
    const { axis, unreleased } = this;
    const { dumps, series } = this.profile.header;
    const above = series[dumps[this.shownDump]?.series ?? -1]?.dumps ?? [];
    const named = above.length > 1 ? above : [];
    const moments: { ms: number; words: string; place: number | null }[] = unreleased
      .filter(({ place }) => !named.includes(place))
      .map(({ ms, dump, place }) => ({ ms, words: dumpName(dump), place }));
    for (const { ms, text } of this.timeline.labels) {
      if (!unreleased.some(({ dump }) => hasLabel(text, dump)) && !named.some((place) => hasLabel(text, dumps[place]!))) moments.push({ ms, words: text, place: null });
    }
    if (moments.length === 0) return null;
    const row = new Row(width);
    const element = h("div", { class: "moments", "aria-hidden": "true" });
    for (const { ms, words, place } of moments) {
      if (!axis.shows(ms)) continue;
      const x = axis.x(ms, width);
      const isShown = place !== null && place === this.shownDump;
      if (!row.take(x, sanitize(words), isShown)) continue;
      const mark = h("span", { class: ["mark", isShown ? "chosen" : "", place === null ? "" : "leads", row.side(x)].filter(Boolean).join(" ") }, sanitize(words));
      mark.style.left = `${x}px`;
      if (place !== null) mark.addEventListener("click", () => this.events.pick(place));
      element.append(mark);
    }
    return element;
  }

  /** Returns vertical lines at dumps, labels and restarts, through all lanes. */
  private rules(width: number): SVGElement {
    const { axis } = this;
    const picture = svg("svg", { viewBox: `0 0 ${width} 100`, width: "100%", height: "100%", preserveAspectRatio: "none", class: "rules", "aria-hidden": "true" });
    const rule = (ms: number, kind: string): void => {
      if (!axis.shows(ms)) return;
      const x = axis.x(ms, width);
      picture.append(svg("line", { x1: x, x2: x, y1: 0, y2: 100, class: kind }));
    };
    for (const { ms, text } of this.timeline.labels) if (!this.unreleased.some(({ dump }) => hasLabel(text, dump))) rule(ms, "label");
    for (const { ms, place } of this.unreleased) rule(ms, place === this.shownDump ? "dump here" : "dump");
    this.group.lives.forEach((life, i) => {
      if (i > 0) rule(life.from_ms, "restart");
      if (life.gone_ms !== null) rule(life.gone_ms, "restart");
    });
    return picture;
  }

  /** Moves the cross-hair and shows the values at that time. Screen readers read them if `isAnnounced`. */
  private point(ms: number, isAnnounced = true): void {
    const { axis, width } = this;
    this.cursor = Math.min(axis.last, Math.max(axis.first, ms));
    const inside = axis.shows(this.cursor);
    this.cross.hidden = !inside;
    this.cross.style.left = `${axis.x(this.cursor, width)}px`;
    this.brush.hidden = this.anchor === null;
    if (this.anchor !== null) {
      const [from, to] = [this.anchor, this.cursor].sort((a, b) => a - b).map((end) => Math.min(width, Math.max(0, axis.x(end, width))));
      this.brush.style.left = `${from!}px`;
      this.brush.style.width = `${Math.max(1, to! - from!)}px`;
    }
    const spoken: string[] = [];
    for (const [series, element] of this.values) {
      const found = series.at(this.cursor);
      element.textContent = found === null ? "–" : amount(found, series.unit);
      if (found !== null) spoken.push(`${series.label} ${amount(found, series.unit)}`);
    }
    const time = `+${duration((this.cursor - axis.first) * 1e6)}`;
    const life = lifeAt(this.group, this.cursor);
    const processText = life ? `process ${life.pid}` : "no readings";
    const adj = life ? value(life.resident, "oom_score_adj", nearest(life.resident, this.cursor)) : null;
    this.moment.textContent = [time, processText, adj === null ? "" : `oom_score_adj ${String(adj).replace("-", "−")}`].filter(Boolean).join(" · ");
    const events = this.eventsAt(this.cursor);
    fill(this.event, ...(events.length > 0 ? events.flatMap((words, i) => [i > 0 ? " · " : "", name(words)]) : ["Point at a time for its values. Drag to zoom in on a time range. Click the line of a dump to show the dump."]));
    this.glass.setAttribute("aria-valuemin", "0");
    this.glass.setAttribute("aria-valuemax", ((axis.last - axis.first) / 1000).toFixed(3));
    this.glass.setAttribute("aria-valuenow", ((this.cursor - axis.first) / 1000).toFixed(3));
    if (isAnnounced || !this.glass.hasAttribute("aria-valuetext")) {
      const stretch = this.anchor === null ? "" : `, selected range ${duration(Math.abs(this.cursor - this.anchor) * 1e6)}`;
      this.glass.setAttribute("aria-valuetext", `${[`${time}${stretch}`, ...events.map(sanitize), ...spoken].join("; ")}`);
    }
  }

  /** Returns the events near a time. */
  private eventsAt(ms: number): string[] {
    const { axis, width, timeline } = this;
    const near = (moment: number): boolean => Math.abs(axis.x(moment, width) - axis.x(ms, width)) <= CLICK_DISTANCE_PX;
    const events: string[] = [];
    const closest = this.unreleased.filter((unreleased) => near(unreleased.ms)).sort((a, b) => Math.abs(a.ms - ms) - Math.abs(b.ms - ms))[0];
    if (closest) {
      const range = rangeOf(this.profile, closest.place);
      events.push(`Dump ${closest.dump.label ?? closest.dump.number}: ${range ? estimate(range) : bytes(closest.bytes)} unreleased`);
    }
    for (const label of timeline.labels) if (near(label.ms) && !(closest && hasLabel(label.text, closest.dump))) events.push(`Label ${label.text}`);
    const captured = this.captureAt(ms);
    if (captured) events.push(`Memory by kind captured ${duration(Math.abs(captured.read - captured.ms) * 1e6)} ${captured.read < captured.ms ? "before" : "after"} it`);
    this.group.lives.forEach((life, i) => {
      if (i > 0 && near(life.from_ms)) events.push(`Restarted as process ${life.pid}`);
      if (life.gone_ms !== null && near(life.gone_ms)) events.push(`Process ${life.pid} ended`);
      const row = nearest(life.collections, ms);
      if (row >= 0 && near(life.collections.ms[row]!)) events.push(describeCollection(timeline, life.collections, row));
    });
    for (const note of timeline.ours) if (near(note.ms)) events.push(`heaptap: ${note.text}`);
    return events.slice(0, 6);
  }

  /** Returns the missing readings and their reasons, which explain empty lanes. */
  private missingReadings(): HTMLElement | null {
    const { unread, words, thinned_from: thinned } = this.timeline;
    const lines = unread.slice(0, 12).map(({ source, why }) => h("li", null, "Cannot read ", name(`${words[source] ?? ""}: ${why}`)));
    if (unread.length > 12) lines.push(h("li", null, `Cannot read ${counted(unread.length - 12, "more source")}`));
    if (thinned) lines.push(h("li", null, `The ${counted(thinned, "reading")} are reduced to the minimum and maximum of each time interval.`));
    return lines.length > 0 ? h("ul", { class: "unread hint" }, ...lines) : null;
  }

  private bind(): void {
    const { glass } = this;
    const ms = (event: MouseEvent): number => this.axis.ms(event.clientX - this.stage.getBoundingClientRect().left, this.width);
    glass.addEventListener("pointermove", (event) => {
      if (this.anchor !== null && event.buttons === 0) this.anchor = null;
      if (this.anchor !== null) this.dragged ||= Math.abs(this.axis.x(ms(event), this.width) - this.axis.x(this.anchor, this.width)) > CLICK_DISTANCE_PX;
      this.point(ms(event));
    });
    glass.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      this.anchor = ms(event);
      this.dragged = false;
      glass.setPointerCapture(event.pointerId);
    });
    glass.addEventListener("pointerup", (event) => {
      const from = this.anchor;
      this.anchor = null;
      if (from === null) return;
      if (this.dragged) this.axis.showRange(Math.min(from, ms(event)), Math.max(from, ms(event)));
      else this.pickNear(ms(event));
    });
    glass.addEventListener("pointercancel", () => {
      this.anchor = null;
      this.point(this.cursor);
    });
    glass.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        this.axis.zoom(event.deltaY > 0 ? 1.25 : 0.8, ms(event));
      },
      { passive: false },
    );
    glass.addEventListener("keydown", (event) => this.key(event));
    this.table.addEventListener("toggle", () => this.fillTable());
    new ResizeObserver(() => this.lanes.length > 0 && this.draw()).observe(this.stage);
  }

  private fillTable(): void {
    const { name: title } = this.recorded;
    const label = `Readings over time${title && ` of ${sanitize(title)}`}`;
    if (this.table.open && this.table.childElementCount < 2) this.table.append(momentsTable(label, this.timeline, this.group, this.unreleased, this.axis.first));
  }

  private pickNear(ms: number): void {
    this.point(ms);
    const near = this.unreleased
      .map((unreleased) => ({ unreleased, apart: Math.abs(this.axis.x(unreleased.ms, this.width) - this.axis.x(ms, this.width)) }))
      .filter(({ apart }) => apart <= CLICK_DISTANCE_PX)
      .sort((a, b) => a.apart - b.apart)[0];
    if (near) this.events.pick(near.unreleased.place);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { axis } = this;
    const steps: Record<string, () => number | null> = {
      ArrowLeft: () => this.next(-1, false),
      ArrowRight: () => this.next(1, false),
      PageUp: () => this.next(-1, true),
      PageDown: () => this.next(1, true),
      Home: () => axis.from,
      End: () => axis.to,
    };
    const actions: Record<string, () => void> = {
      "+": () => axis.zoom(0.5, this.cursor),
      "=": () => axis.zoom(0.5, this.cursor),
      "-": () => axis.zoom(2, this.cursor),
      "0": () => axis.all(),
      Escape: () => (this.anchor === null ? axis.all() : ((this.anchor = null), this.point(this.cursor))),
      Enter: () => this.enter(),
      " ": () => this.enter(),
    };
    const step = steps[event.key];
    const action = actions[event.key];
    if (!step && !action) return;
    event.preventDefault();
    if (action) return action();
    const to = step!();
    if (to === null) return;
    if (event.shiftKey) this.anchor ??= this.cursor;
    else this.anchor = null;
    if (!axis.shows(to)) axis.showRange(to - (axis.to - axis.from) / 2, to + (axis.to - axis.from) / 2);
    this.point(to);
  }

  /** Zooms in on the selected range; without one, shows the nearest dump. */
  private enter(): void {
    const from = this.anchor;
    this.anchor = null;
    if (from !== null && from !== this.cursor) return this.axis.showRange(Math.min(from, this.cursor), Math.max(from, this.cursor));
    const unreleased = this.unreleasedAt(this.cursor);
    if (unreleased) this.events.pick(unreleased.place);
  }

  /** Returns the time of the next reading or event in a direction; null if there is none. */
  private next(side: 1 | -1, isEvent: boolean): number | null {
    const moments = [...this.unreleased.map(({ ms }) => ms), ...this.timeline.labels.map(({ ms }) => ms)];
    for (const life of this.group.lives) {
      moments.push(life.from_ms, life.gone_ms ?? life.from_ms);
      for (const ms of life.collections.ms) moments.push(ms);
      if (!isEvent) for (const rows of [life.resident, life.parts]) for (const ms of rows.ms) moments.push(ms);
    }
    let best: number | null = null;
    for (const ms of moments) {
      const ahead = (ms - this.cursor) * side;
      if (ahead > 1e-6 && (best === null || ahead < (best - this.cursor) * side)) best = ms;
    }
    return best;
  }
}
