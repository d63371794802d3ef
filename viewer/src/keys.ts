// Keys of frames: frames with the same function, line, library or package share a box. A key is a small
// number with a label and a hash.

import { basename, hash, sanitize } from "./names";
import type { Profile } from "./profile";

export type Grouping = "function" | "line" | "library" | "package";

export interface Keys {
  grouping: Grouping;
  count: number;
  /** Key by frame. */
  ofFrame: Int32Array;
  /** One frame of each key, for its function, library and file. */
  frameOf: Int32Array;
  /** Returns the label for display. */
  label(key: number): string;
  /** Returns a hash that does not depend on the page, for links. */
  hash(key: number): number;
}

/** Library name of functions whose library is unknown. */
export const NO_LIBRARY = "(no library)";

export function libraryName(profile: Profile, library: number): string {
  const path = profile.libraries[library]?.path ?? "";
  return path ? basename(path) : NO_LIBRARY;
}

export function functionName(profile: Profile, id: number): string {
  return profile.texts[profile.functions.name[id]!] || "(no name)";
}

/** Returns `File.kt:12`; empty if the file is unknown. */
export function sourceLine(profile: Profile, frame: number): string {
  const file = profile.texts[profile.frames.file[frame]!] ?? "";
  const line = profile.frames.line[frame]!;
  return file ? (line ? `${file}:${line}` : file) : "";
}

/** Returns `android.graphics` for `android.graphics.Bitmap.nativeCreate`, `SkImage` for `SkImage::x()`. */
export function packageOf(name: string): string {
  const head = name.split(/[(<\s]/, 1)[0]!;
  const colons = head.lastIndexOf("::");
  if (colons > 0) return head.slice(0, colons);
  const parts = head.split(".");
  return parts.length > 2 ? parts.slice(0, -2).join(".") : "";
}

export function keysFor(profile: Profile, grouping: Grouping): Keys {
  const { count, function: functionOf } = profile.frames;
  const { functions } = profile;
  const ofFrame = new Int32Array(count);
  const names = new Map<string | number, number>();
  const frames: number[] = [];
  const texts: string[] = [];
  // Functions with the same name and library share a key, even if their linker names differ.
  const ofFunction = new Int32Array(functions.count).fill(-1);
  const keyOf = (identity: string | number, frame: number, text: string | null): number => {
    let key = names.get(identity);
    if (key === undefined) {
      key = names.size;
      names.set(identity, key);
      frames.push(frame);
      if (text !== null) texts.push(text);
    }
    return key;
  };
  for (let frame = 0; frame < count; frame++) {
    const id = functionOf[frame]!;
    if (grouping === "line") {
      ofFrame[frame] = keyOf(
        `${functions.name[id]} ${functions.library[id]} ${profile.frames.file[frame]} ${profile.frames.line[frame]}`,
        frame,
        null,
      );
      continue;
    }
    let key = ofFunction[id]!;
    if (key < 0) {
      if (grouping === "function") {
        key = keyOf(functions.name[id]! * 0x200000 + functions.library[id]!, frame, null);
      } else {
        const library = libraryName(profile, functions.library[id]!);
        const text =
          grouping === "library" ? library : packageOf(functionName(profile, id)) || `(no package) ${library}`;
        key = keyOf(text, frame, text);
      }
      ofFunction[id] = key;
    }
    ofFrame[frame] = key;
  }
  const frameOf = Int32Array.from(frames);
  const label = (key: number): string => {
    if (key < 0) return "all";
    const made = texts[key];
    if (made !== undefined) return made;
    const frame = frameOf[key]!;
    const name = functionName(profile, functionOf[frame]!);
    if (grouping !== "line") return name;
    const line = sourceLine(profile, frame);
    return line ? `${name}  ${basename(line)}` : name;
  };
  const hashes = new Map<number, number>();
  return {
    grouping,
    count: frameOf.length,
    ofFrame,
    frameOf,
    label: (key) => sanitize(label(key)),
    hash(key) {
      let value = hashes.get(key);
      if (value === undefined) {
        const library = key < 0 ? "" : libraryName(profile, functions.library[functionOf[frameOf[key]!]!]!);
        value = hash(library, hash(`${label(key)}\u0000`));
        hashes.set(key, value);
      }
      return value;
    },
  };
}

/** Returns the full label, for copying. */
export function rawLabel(profile: Profile, keys: Keys, key: number): string {
  if (key < 0) return "all";
  if (keys.grouping === "function" || keys.grouping === "line") {
    return functionName(profile, profile.frames.function[keys.frameOf[key]!]!);
  }
  return keys.label(key);
}
