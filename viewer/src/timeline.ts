// Dumps of a heap over time: a line of the values, and a button for each dump. A click shows a dump, and a
// drag from one dump to another shows their difference. Arrow keys move between dumps; with Shift, they
// extend the difference.

import { Row, type Axis } from "./axis";
import { fill, h, svg } from "./dom";
import type { DumpFacts } from "./format";
import { dumpName, sanitize } from "./names";
import type { Profile } from "./profile";
import { amount, counted, duration } from "./units";

export interface TimelineEvents {
  pick(dump: number, base: number | null): void;
}

const HEIGHT = 64;
/** Maximum number of names below the line. */
const MAX_MARKS = 60;
/** Maximum number of dumps with a button. */
const MAX_BUTTONS = 400;

function nameOf(dump: DumpFacts): string {
  return sanitize(dumpName(dump));
}

export class Timeline {
  readonly element: HTMLElement;
  private readonly strip: HTMLElement;
  private readonly note: HTMLElement;
  private places: number[] = [];
  private xs: number[] = [];
  private dragFrom: number | null = null;
  private moved = false;

  constructor(
    private readonly profile: Profile,
    private readonly events: TimelineEvents,
    /** Axes of the lanes below, one per recording. */
    private readonly axes: { axis: Axis; has(dump: number): boolean }[] = [],
  ) {
    this.strip = h("div", { class: "strip", role: "group", "aria-label": "Dumps over time" });
    this.note = h("p", { class: "hint" });
    this.element = h("section", { class: "timeline", "aria-label": "Timeline" }, this.strip, this.note);
    this.strip.addEventListener("pointerdown", (event) => this.down(event));
    this.strip.addEventListener("pointermove", (event) => this.move(event));
    this.strip.addEventListener("pointerup", (event) => this.up(event));
    this.strip.addEventListener("pointercancel", () => (this.dragFrom = null));
    this.strip.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.redraw()).observe(this.strip);
    for (const { axis } of this.axes) axis.onChange(() => this.redraw());
  }

  private last: [number, number | null, string] = [-1, null, ""];

  /** Shows the series of a dump. */
  show(dump: number, base: number | null, metric: string): void {
    this.last = [dump, base, metric];
    const facts = this.profile.dumps[dump]!.facts;
    this.places = this.profile.header.series[facts.series]?.dumps ?? [dump];
    this.element.hidden = this.places.length < 2;
    this.redraw();
  }

  private redraw(): void {
    if (this.places.length < 2) return;
    const [dump, base, metric] = this.last;
    const width = this.strip.clientWidth || 800;
    const left = 12;
    const right = width - 12;
    const facts = this.places.map((place) => this.profile.dumps[place]!.facts);
    const times = facts.map((each) => each.time_ms);
    const timed = times.every((time) => time !== null) && times[0] !== times[times.length - 1];
    const first = timed ? times[0]! : 0;
    const span = timed ? times[times.length - 1]! - first : facts.length - 1;
    const shared = timed ? this.axes.find((each) => each.has(dump))?.axis : null;
    this.xs = facts.map((each, i) => shared?.x(each.time_ms!, width) ?? left + ((right - left) * (timed ? each.time_ms! - first : i)) / span);
    const [begin, end] = [this.xs[0]!, this.xs[this.xs.length - 1]!];
    const values = facts.map((each) => {
      const measure = each.measures.find(({ name }) => name === metric) ?? each.measures[each.default_measure];
      return measure?.total ?? 0;
    });
    const most = Math.max(...values, 1);
    const unit = facts[0]!.measures.find(({ name }) => name === metric)?.unit ?? "bytes";
    const y = (value: number): number => HEIGHT - 6 - (HEIGHT - 26) * Math.max(0, value / most);
    const points = this.xs.map((x, i) => `${x.toFixed(1)},${y(values[i]!).toFixed(1)}`);
    const picture = svg(
      "svg",
      { width, height: HEIGHT, "aria-hidden": "true", class: "line" },
      svg("polygon", { points: `${begin},${HEIGHT - 6} ${points.join(" ")} ${end},${HEIGHT - 6}`, class: "area" }),
      svg("polyline", { points: points.join(" "), class: "curve" }),
    );
    const at = this.places.indexOf(dump);
    const from = base === null ? -1 : this.places.indexOf(base);
    const parts: Node[] = [picture];
    if (from >= 0 && at >= 0 && from !== at) parts.push(this.band(this.xs[from]!, this.xs[at]!));
    this.places.forEach((place, i) => {
      if (this.places.length > MAX_BUTTONS && i !== at && i !== from && i % Math.ceil(this.places.length / MAX_BUTTONS) !== 0) return;
      const each = facts[i]!;
      const passed = timed ? `${duration((each.time_ms! - first) * 1e6)} after the first, ` : "";
      const label = `${nameOf(each)}, ${passed}${amount(values[i]!, unit)}${i === from ? ", base of the comparison" : ""}`;
      const dot = h("button", {
        type: "button",
        class: `dot${i === at ? " here" : ""}${i === from ? " base" : ""}${each.unfinished || each.flags.length ? " flagged" : ""}`,
        "aria-pressed": i === at ? "true" : "false",
        "aria-label": label,
        title: label,
        tabindex: i === at || (at < 0 && i === 0) ? 0 : -1,
        "data-place": place,
      });
      dot.style.left = `${this.xs[i]!}px`;
      dot.style.top = `${y(values[i]!)}px`;
      parts.push(dot);
    });
    parts.push(...this.marks(facts, at, from, width));
    fill(this.strip, ...parts);
    const long = timed ? ` within ${duration(span * 1e6)}` : "";
    this.note.textContent = `${counted(this.places.length, "dump")}${long}, up to ${amount(most, unit)}. Click a dump to show it, or drag from one dump to another to compare them.`;
  }

  /** Returns the names below the line that do not overlap: selected dumps first, then labels. */
  private marks(facts: DumpFacts[], at: number, from: number, width: number): Node[] {
    const rank = (i: number): number => (i === at || i === from ? 0 : facts[i]!.label ? 1 : 2);
    const order = facts.map((_, i) => i).sort((a, b) => rank(a) - rank(b) || a - b);
    const row = new Row(width);
    const marks: Node[] = [];
    for (const i of order) {
      const chosen = rank(i) === 0;
      const words = nameOf(facts[i]!);
      const x = this.xs[i]!;
      if (!row.take(x, words, chosen)) continue;
      const text = h("span", { class: `mark${chosen ? " chosen" : ""}`, "aria-hidden": "true" }, words);
      text.style.left = `${x}px`;
      if (row.side(x)) text.classList.add(row.side(x));
      marks.push(text);
      if (marks.length >= MAX_MARKS) break;
    }
    return marks;
  }

  private band(from: number, to: number): HTMLElement {
    const band = h("div", { class: "band", "aria-hidden": "true" });
    band.style.left = `${Math.min(from, to)}px`;
    band.style.width = `${Math.abs(to - from)}px`;
    return band;
  }

  private nearest(event: PointerEvent): number {
    const x = event.clientX - this.strip.getBoundingClientRect().left;
    let best = 0;
    this.xs.forEach((at, i) => {
      if (Math.abs(at - x) < Math.abs(this.xs[best]! - x)) best = i;
    });
    return best;
  }

  private down(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.dragFrom = this.nearest(event);
    this.moved = false;
    this.strip.setPointerCapture(event.pointerId);
  }

  private move(event: PointerEvent): void {
    if (this.dragFrom === null) return;
    const to = this.nearest(event);
    if (to === this.dragFrom && !this.moved) return;
    this.moved = true;
    this.strip.querySelector(".band")?.remove();
    if (to !== this.dragFrom) this.strip.append(this.band(this.xs[this.dragFrom]!, this.xs[to]!));
  }

  private up(event: PointerEvent): void {
    if (this.dragFrom === null) return;
    const from = this.dragFrom;
    const to = this.nearest(event);
    this.dragFrom = null;
    // The difference is from the earlier to the later dump, in either direction of the drag.
    const later = Math.max(from, to);
    const earlier = Math.min(from, to);
    this.events.pick(this.places[later]!, earlier === later ? null : this.places[earlier]!);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [dump, base] = this.last;
    const at = this.places.indexOf(dump);
    const steps: Record<string, number> = {
      ArrowLeft: at - 1,
      ArrowRight: at + 1,
      Home: 0,
      End: this.places.length - 1,
    };
    if (event.key === "Enter" || event.key === " ") {
      const place = Number((event.target as HTMLElement).dataset["place"]);
      if (Number.isInteger(place)) this.events.pick(place, null);
      event.preventDefault();
      return;
    }
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const to = Math.max(0, Math.min(step, this.places.length - 1));
    const from = event.shiftKey ? (base ?? dump) : null;
    const place = this.places[to]!;
    this.events.pick(place, from === place ? null : from);
    requestAnimationFrame(() => this.strip.querySelector<HTMLElement>(".dot.here")?.focus());
  }
}
