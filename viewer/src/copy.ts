// Exports callstacks and tables as text, to the clipboard or into a file. Names are written in full;
// only characters that would break the format are replaced.

import { pathOf, type Cell, type Tree } from "./grow";
import { functionName, sourceLine, libraryName } from "./keys";
import type { Profile } from "./profile";
import type { Scene } from "./scene";
import { exact } from "./units";

/** Returns a name for a folded stack, without separators and line breaks. */
function foldedName(name: string): string {
  return name.replace(/;/g, ":").replace(/[\r\n]+/g, " ");
}

/** Returns all shown callstacks with their self values, `root;…;leaf 123`, as flamegraph.pl reads
 * them; for a difference, the values are `before after`. */
export function folded(profile: Profile, scene: Scene): string {
  const { parent, frame, count } = profile.nodes;
  const { shown } = scene.selection;
  const { after, before } = scene.shown;
  const names = new Map<number, string>();
  const nameOf = (node: number): string => {
    const id = profile.frames.function[frame[node]!]!;
    let name = names.get(id);
    if (name === undefined) names.set(id, (name = foldedName(functionName(profile, id))));
    return name;
  };
  const lines = new Map<string, [number, number]>();
  for (let node = 0; node < count; node++) {
    const now = after.self[node]!;
    const then = before?.self[node] ?? 0;
    if (now === 0 && then === 0) continue;
    const path: string[] = [];
    for (let at = shown[node]!; at > 0; at = shown[parent[at]!]!) path.push(nameOf(at));
    const stack = path.length > 0 ? path.reverse().join(";") : "(hidden)";
    const sum = lines.get(stack);
    if (sum) {
      sum[0] += then;
      sum[1] += now;
    } else {
      lines.set(stack, [then, now]);
    }
  }
  const text = [...lines].map(([stack, [then, now]]) => (before ? `${stack} ${then} ${now}` : `${stack} ${now}`));
  return text.sort().map((line) => `${line}\n`).join("");
}

interface StackRow {
  name: string;
  library: string;
  place: string;
  value: number;
}

function stackRows(profile: Profile, scene: Scene, tree: Tree, cell: Cell): StackRow[] {
  return pathOf(cell).map((at) => {
    const frame = tree.frameAt(at);
    const id = frame < 0 ? -1 : profile.frames.function[frame]!;
    return {
      name: id < 0 ? scene.keys.label(at.key) : functionName(profile, id),
      library: id < 0 ? "" : libraryName(profile, profile.functions.library[id]!),
      place: frame < 0 ? "" : sourceLine(profile, frame),
      value: at.after,
    };
  });
}

/** Returns the callstack of a cell in folded format, with the total value of the cell. */
export function stackFolded(profile: Profile, scene: Scene, tree: Tree, cell: Cell): string {
  const rows = stackRows(profile, scene, tree, cell);
  if (tree.direction === "bottom-up" || tree.direction === "callers") rows.reverse();
  return `${rows.map(({ name }) => foldedName(name)).join(";")} ${cell.after}\n`;
}

/** Returns the callstack of a cell as a Markdown table, outermost caller first. */
export function stackMarkdown(profile: Profile, scene: Scene, tree: Tree, cell: Cell): string {
  const escape = (text: string): string => text.replace(/[\r\n]+/g, " ").replace(/[\\|`<>*_[\]]/g, "\\$&");
  const rows = stackRows(profile, scene, tree, cell);
  const lines = rows.map(
    ({ name, library, place, value }) =>
      `| ${escape(name)} | ${escape(library)} | ${escape(place)} | ${exact(value, scene.unit)} |`,
  );
  return `| Function | Library | Line | ${escape(scene.unit)} |\n|---|---|---|---:|\n${lines.join("\n")}\n`;
}

/** Returns the callstack of a cell as tab-separated values. */
export function stackTsv(profile: Profile, scene: Scene, tree: Tree, cell: Cell): string {
  const rows = stackRows(profile, scene, tree, cell);
  return tsv(["function", "library", "line", scene.unit], rows.map((row) => [row.name, row.library, row.place, row.value]));
}

/** Returns a text for a cell of a spreadsheet: a part that can be read as a formula gets a quote. Where
 * numbers have decimal commas, a spreadsheet splits the lines of a file at semicolons. */
export function inert(text: string): string {
  return text.replace(/(^|;)(?=[\s"]*[=+\-@＝＋－＠])/g, "$1'");
}

/** Returns rows as tab-separated values. */
export function tsv(head: string[], rows: (string | number)[][]): string {
  const cell = (value: string | number): string => {
    if (typeof value === "number") return String(value);
    return inert(value.replace(/[\t\r\n]+/g, " "));
  };
  return [head, ...rows].map((row) => `${row.map(cell).join("\t")}\n`).join("");
}

/** Copies a text to the clipboard. Returns false if the browser denies access. */
export async function copyToClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "off-screen";
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}

/** Lets the browser save a text as a file. */
export function saveFile(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
