// Sanitizes names from devices, traces and archives. All foreign text on the page passes through here and
// then through textContent or fillText; it is never markup.

import type { JavaFacts } from "./format";

/** Maximum length of a shown name; copied names are not cut. */
const MAX_NAME_LENGTH = 400;

/** Characters that hide, reorder or control text: C0, C1, bidi controls, zero-width ones. */
const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

function spellOut(char: string): string {
  return `<U+${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}>`;
}

/** Spells out invisible characters, such as `<U+202E>`. */
export function escapeInvisible(name: string): string {
  return name.replace(INVISIBLE, spellOut);
}

/** Returns a name for display: cut to the maximum length, with invisible characters spelled out. */
export function sanitize(name: string): string {
  const cut = name.length > MAX_NAME_LENGTH ? `${name.slice(0, MAX_NAME_LENGTH)}…` : name;
  return escapeInvisible(cut);
}

/** Returns the name of a dump of a known heap: its label, or `@3` as in commands. */
export function dumpName({ label, number }: { label: string | null; number: number }): string {
  return label ?? `@${number}`;
}

/** Returns one title per Java heap: its process and dump. If two are equal, all have the name of their input. */
export function heapTitles(heaps: JavaFacts[]): string[] {
  const forms = [
    ({ name, label, number }: JavaFacts) => `${name}${label ? ` @${label}` : number !== null ? ` #${number}` : ""}`,
    ({ name, dump }: JavaFacts) => `${name} · ${basename(dump)}`,
    ({ name, dump }: JavaFacts) => `${name} · ${dump}`,
  ].map((form) => heaps.map(form));
  return forms.find((titles) => new Set(titles).size === titles.length) ?? forms[2]!;
}

/** Returns the last part of a path: `libc.so` of `/apex/com.android.runtime/lib64/bionic/libc.so`. */
export function basename(path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1);
  // base.apk!libfoo.so: the library inside.
  const inside = name.slice(name.lastIndexOf("!") + 1);
  return inside || name || path;
}

/** FNV-1a over UTF-16 code units, in 32 bits: links use hashes because IDs differ between reports. */
export function hash(text: string, seed = 0x811c9dc5): number {
  let value = seed;
  for (let i = 0; i < text.length; i++) {
    value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  }
  return value >>> 0;
}
