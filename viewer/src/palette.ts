// Colors by library. The largest libraries have their own hues, which are distinguishable with any color
// vision (after Okabe and Ito, lightened or darkened for a text contrast of 4.5:1). The others share a
// neutral color. Java code and changes have their own colors.

import type { Keys } from "./keys";
import { libraryName } from "./keys";
import { Kind, type Profile } from "./profile";

export type Theme = "light" | "dark";

/** Hues in order: blue, orange, green, purple, sky, yellow, vermillion, teal. */
const LIGHT = ["#a9c9ec", "#f6cf94", "#a5dcc3", "#e3b9d6", "#c3e4f7", "#f3ea9c", "#f3b79c", "#b9d6d4"];
const DARK = ["#23507f", "#7a4f0c", "#14603f", "#6d3a5c", "#1f5f80", "#5f580e", "#83391a", "#2f5a5a"];

const JAVA = { light: "#d6d0f3", dark: "#463f86" };
const REST = { light: "#dfe3e8", dark: "#3a424c" };
const ROOT = { light: "#eef1f4", dark: "#262d36" };

export interface Colors {
  background: string;
  ink: string;
  /** Secondary text. */
  soft: string;
  edge: string;
  focus: string;
  hit: string;
  merged: string;
  root: string;
}

export function colors(theme: Theme): Colors {
  return theme === "light"
    ? {
        background: "#ffffff",
        ink: "#14181d",
        soft: "#57606a",
        edge: "#ffffff",
        focus: "#0550ae",
        hit: "#b300b3",
        merged: "#c4cad1",
        root: ROOT.light,
      }
    : {
        background: "#0d1117",
        ink: "#f0f4f8",
        soft: "#9aa4af",
        edge: "#0d1117",
        focus: "#79b8ff",
        hit: "#ff8cff",
        merged: "#4b545f",
        root: ROOT.dark,
      };
}

/** Entry of the legend. */
export interface Entry {
  name: string;
  color: string;
  share: number;
}

/** Colors of the keys. */
export class Palette {
  private readonly index = new Map<string, number>();

  constructor(
    private readonly profile: Profile,
    /** Libraries by self value, and their shares. */
    private readonly ranked: { name: string; share: number }[],
  ) {
    ranked.slice(0, LIGHT.length).forEach(({ name }, i) => this.index.set(name, i));
  }

  color(keys: Keys, key: number, theme: Theme): string {
    if (key < 0) return ROOT[theme];
    const id = this.profile.frames.function[keys.frameOf[key]!]!;
    const hue = this.index.get(libraryName(this.profile, this.profile.functions.library[id]!));
    if (hue !== undefined) return (theme === "light" ? LIGHT : DARK)[hue]!;
    return this.profile.functions.kind[id] === Kind.Java ? JAVA[theme] : REST[theme];
  }

  legend(theme: Theme): Entry[] {
    const entries = this.ranked.slice(0, LIGHT.length).map(({ name, share }, i) => ({
      name,
      color: (theme === "light" ? LIGHT : DARK)[i]!,
      share,
    }));
    const rest = this.ranked.slice(LIGHT.length).reduce((sum, { share }) => sum + share, 0);
    if (rest > 0) entries.push({ name: "other libraries", color: REST[theme], share: rest });
    return entries;
  }
}

/** Returns orange for increases and blue for decreases, deeper for larger changes; gray if the interval contains 0. */
export function changeColor(share: number, isWithinError: boolean, theme: Theme): string {
  if (share === 0) return theme === "light" ? "#eceff2" : "#2b323b";
  if (isWithinError) return theme === "light" ? "#d3d8de" : "#434c57";
  const depth = Math.min(1, Math.abs(share)) ** 0.45;
  const [r, g, b] = share > 0 ? [240, 150, 40] : [70, 140, 220];
  const [base, strength] = theme === "light" ? [255, 0.3 + 0.55 * depth] : [20, 0.28 + 0.4 * depth];
  const mix = (channel: number): number => Math.round(base + (channel - base) * strength);
  return `rgb(${mix(r!)},${mix(g!)},${mix(b!)})`;
}
