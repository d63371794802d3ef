// Visible time range, shared by the dumps and the lanes below them, and the layout of names along it.

/** Horizontal padding in px. */
const PADDING = 12;
/** Minimum length of the visible range in ms. */
const MIN_SPAN_MS = 10;

export class Axis {
  /** Visible range in ms. */
  from: number;
  to: number;
  private readonly listeners: (() => void)[] = [];

  constructor(
    readonly first: number,
    readonly last: number,
  ) {
    this.from = first;
    this.to = last;
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  get zoomed(): boolean {
    return this.from > this.first || this.to < this.last;
  }

  x(ms: number, width: number): number {
    return PADDING + ((width - 2 * PADDING) * (ms - this.from)) / (this.to - this.from);
  }

  ms(x: number, width: number): number {
    return this.from + ((x - PADDING) / Math.max(1, width - 2 * PADDING)) * (this.to - this.from);
  }

  shows(ms: number): boolean {
    return ms >= this.from && ms <= this.to;
  }

  /** Shows a range, limited to the recording and to the minimum length. */
  showRange(from: number, to: number): void {
    const span = Math.min(this.last - this.first, Math.max(MIN_SPAN_MS, Math.abs(to - from)));
    const middle = (from + to) / 2;
    const start = Math.min(Math.max(middle - span / 2, this.first), this.last - span);
    this.from = start;
    this.to = start + span;
    for (const listener of this.listeners) listener();
  }

  /** Zooms in (below 1) or out around a time that keeps its position. */
  zoom(times: number, around: number): void {
    this.showRange(around - (around - this.from) * times, around + (this.to - around) * times);
  }

  all(): void {
    this.showRange(this.first, this.last);
  }

  /** Returns at most `most` times for marks, in round steps since the first. */
  ticks(most: number): number[] {
    const steps = [10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1.5e4, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 144e5, 432e5, 864e5];
    const span = this.to - this.from;
    const step = steps.find((each) => span / each <= most) ?? Math.ceil(span / most / 864e5) * 864e5;
    const ticks: number[] = [];
    for (let n = Math.ceil((this.from - this.first) / step); this.first + n * step <= this.to; n++) ticks.push(this.first + n * step);
    return ticks;
  }
}

/** Maximum half width of a name in px; longer names are cut. */
const MAX_HALF_WIDTH = 118;

/** Positions of names in a row. A name is placed only if it does not overlap earlier names. */
export class Row {
  private readonly taken: [number, number][] = [];

  constructor(private readonly width: number) {}

  /** Reserves room for a name around `x`. Returns false if it overlaps another name, unless it must be placed. */
  take(x: number, words: string, must: boolean): boolean {
    const half = Math.min(words.length * 3.4 + 8, MAX_HALF_WIDTH);
    const middle = Math.min(Math.max(x, half), this.width - half);
    const clash = this.taken.some(([left, right]) => middle - half < right && middle + half > left);
    if (clash && !must) return false;
    this.taken.push([middle - half, middle + half]);
    return true;
  }

  /** Returns the alignment of a name to its `x`: to one side if it would leave the row. */
  side(x: number): "" | "start" | "end" {
    return x > this.width - 60 ? "end" : x < 40 ? "start" : "";
  }
}
