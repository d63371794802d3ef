// The stretch of time that is looked at: one for the dumps and for all lanes below them. Which names
// of moments have room beside each other.

const PAD = 12;
/** Nobody needs to look closer, ms. */
const CLOSEST = 10;

export class Axis {
  /** What is shown of it. */
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
    return PAD + ((width - 2 * PAD) * (ms - this.from)) / (this.to - this.from);
  }

  ms(x: number, width: number): number {
    return this.from + ((x - PAD) / Math.max(1, width - 2 * PAD)) * (this.to - this.from);
  }

  shows(ms: number): boolean {
    return ms >= this.from && ms <= this.to;
  }

  /** Looks at a stretch, no longer than there is and no shorter than makes sense. */
  look(from: number, to: number): void {
    const span = Math.min(this.last - this.first, Math.max(CLOSEST, Math.abs(to - from)));
    const middle = (from + to) / 2;
    const start = Math.min(Math.max(middle - span / 2, this.first), this.last - span);
    this.from = start;
    this.to = start + span;
    for (const listener of this.listeners) listener();
  }

  /** Closer (below 1) or further away, around a moment that keeps its place. */
  zoom(times: number, around: number): void {
    this.look(around - (around - this.from) * times, around + (this.to - around) * times);
  }

  all(): void {
    this.look(this.first, this.last);
  }

  /** Moments for marks, in round steps since the first. */
  ticks(most: number): number[] {
    const steps = [10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1.5e4, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 144e5, 432e5, 864e5];
    const span = this.to - this.from;
    const step = steps.find((each) => span / each <= most) ?? Math.ceil(span / most / 864e5) * 864e5;
    const ticks: number[] = [];
    for (let n = Math.ceil((this.from - this.first) / step); this.first + n * step <= this.to; n++) ticks.push(this.first + n * step);
    return ticks;
  }
}

/** Half of what a name takes at most, px: longer ones are cut. */
const HALF = 118;

/** Places of names in a row of some width; each is there only where no name before it stands. */
export class Row {
  private readonly taken: [number, number][] = [];

  constructor(private readonly width: number) {}

  /** Whether a name has room around `x`; takes it. One that must be there takes it from others. */
  take(x: number, words: string, must: boolean): boolean {
    const half = Math.min(words.length * 3.4 + 8, HALF);
    const middle = Math.min(Math.max(x, half), this.width - half);
    const clash = this.taken.some(([left, right]) => middle - half < right && middle + half > left);
    if (clash && !must) return false;
    this.taken.push([middle - half, middle + half]);
    return true;
  }

  /** How an element of a name stands to its `x`: beside it where it would leave the row. */
  side(x: number): "" | "start" | "end" {
    return x > this.width - 60 ? "end" : x < 40 ? "start" : "";
  }
}
