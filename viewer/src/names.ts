// Names from devices, traces and archives: how they may be shown. Everything that reaches the
// page goes through here and then through textContent or fillText; nothing is ever markup.

/** Longest name that is shown; what is copied is never cut. */
const LONGEST = 400;

/** Characters that hide, reorder or control text: C0, C1, bidi controls, zero-width ones. */
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

function spelled(char: string): string {
  return `<U+${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}>`;
}

/** A name with unseen characters spelled out, such as `<U+202E>`. */
export function plain(name: string): string {
  return name.replace(UNSEEN, spelled);
}

/** A name as it is shown: spelled out and of bearable length. */
export function shown(name: string): string {
  const cut = name.length > LONGEST ? `${name.slice(0, LONGEST)}…` : name;
  return plain(cut);
}

/** What a dump is called where its process and heap are known: its label, or `@3` as in commands. */
export function dumpName({ label, number }: { label: string | null; number: number }): string {
  return label ?? `@${number}`;
}

/** The last part of a path: `libc.so` of `/apex/com.android.runtime/lib64/bionic/libc.so`. */
export function basename(path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1);
  // base.apk!libfoo.so: the library inside.
  const inside = name.slice(name.lastIndexOf("!") + 1);
  return inside || name || path;
}

/** FNV-1a over UTF-16 code units, in 32 bits: names in links must outlive their ids. */
export function hash(text: string, seed = 0x811c9dc5): number {
  let value = seed;
  for (let i = 0; i < text.length; i++) {
    value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  }
  return value >>> 0;
}
