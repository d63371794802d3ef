// Cards of the first screen: memory by kind, growth, and where to look next.

import { button, h, name } from "./dom";
import type { Header, JavaFacts } from "./format";
import { dumpName, heapTitles, sanitize } from "./names";
import { whereAt } from "./readings";
import { measureTitle } from "./details";
import { amount, bytes, counted, percent, signed, thousands } from "./units";
import type { Tab } from "./state";

export interface GrowthRow {
  label: string;
  value: number;
  says: string;
  verdict: string;
  key: number | null;
}

export interface GrowthTotal {
  value: number;
  from: string;
  to: string;
}

export interface SummaryEvents {
  tab(tab: Tab): void;
  /** The leaks of the Java heap. */
  leaks(): void;
  grown(row: GrowthRow): void;
  compare(): void;
}

/** Returns the index of the Java heap that the cards describe: the compared one, otherwise the last one. */
export function describedHeap(heaps: JavaFacts[]): number {
  const compared = heaps.findIndex((heap) => heap.compared_with);
  return compared < 0 ? heaps.length - 1 : compared;
}

/** Labels of the verdicts, as in `heaptap leaks`. */
export const VERDICTS: Record<string, string> = {
  confirmed: "confirmed",
  grew: "grew",
  "within-sampling-error": "within sampling error",
  "inconclusive": "inconclusive",
};

/** Meanings of the verdicts. */
const MEANINGS: Record<string, string> = {
  confirmed: "a leak, over all iterations",
  grew: "more in the later dump; once or repeatedly",
  "within-sampling-error": "can be chance",
  "inconclusive": "not known to continue, or too little data",
};

/** Returns the meanings of those verdicts that occur, as one line. */
export function legend(verdicts: string[]): HTMLElement | string {
  const words = Object.entries(MEANINGS).filter(([verdict]) => verdicts.includes(verdict));
  return words.length === 0 ? "" : h("p", { class: "hint" }, `${words.map(([verdict, meaning]) => `${VERDICTS[verdict]}: ${meaning}`).join(". ")}.`);
}

/** Color classes of the parts, not used behind text. */
const PART_CLASSES: Record<string, string> = {
  native: "part-native",
  java: "part-java",
  graphics: "part-graphics",
  code: "part-code",
  stack: "part-stack",
  system: "part-system",
  unseen: "part-unseen",
};

function memoryCard(header: Header, place: number, shownDump: number): HTMLElement {
  const memory = shownDump === place ? header.where : whereAt(header, shownDump, place);
  const card = h("section", { class: "card where", "aria-label": "Where the memory is" }, h("h2", null, "Where the memory is"));
  const parts = memory?.parts ?? [];
  const known = parts.filter((part) => part.bytes !== null);
  const sum = known.reduce((total, part) => total + Math.max(0, part.bytes!), 0);
  const total = memory?.total ?? null;
  // The Java heap alone is not where the memory is.
  if (memory && (known.length > 1 || header.dumps.length > 0)) {
    card.append(
      h(
        "p",
        { class: "headline" },
        h("b", null, bytes(total ?? sum)),
        h("span", { class: "soft" }, ` ${total === null ? "in these parts" : (memory.of ?? "")}${memory.at ? ` at ${sanitize(memory.at)}` : ""}`),
      ),
    );
    const bar = h("div", { class: "stacked", "aria-hidden": "true" });
    for (const part of known) {
      const piece = h("i", { class: PART_CLASSES[part.name] ?? "part-other" });
      piece.style.flexGrow = String(Math.max(0, part.bytes!) / Math.max(1, sum));
      bar.append(piece);
    }
    card.append(bar);
    card.append(
      h(
        "ul",
        { class: "parts" },
        ...parts.map((part) =>
          h(
            "li",
            { title: part.how ? sanitize(part.how) : null },
            h("i", { class: `swatch ${PART_CLASSES[part.name] ?? "part-other"}`, "aria-hidden": "true" }),
            name(part.name),
            " ",
            h("b", null, part.bytes === null ? "unknown" : bytes(part.bytes)),
          ),
        ),
      ),
    );
  } else {
    const dump = header.dumps[shownDump] ?? header.dumps[place];
    const measure = dump?.measures[dump.default_measure];
    const heaps = header.java ?? [];
    if (dump && measure) {
      const title = sanitize(dumpName(dump));
      const words = [measureTitle(measure).toLowerCase(), dump.heap ? sanitize(dump.heap) : ""].filter(Boolean).join(", ");
      card.append(h("p", { class: "headline" }, h("b", null, amount(measure.total, measure.unit)), h("span", { class: "soft" }, ` ${words}, at ${title}`)));
    } else if (heaps.length > 0) {
      const at = describedHeap(heaps);
      const heap = heaps[at]!;
      const of = heaps.length > 1 ? ` of ${sanitize(heapTitles(heaps)[at]!)}` : "";
      const native = heap.native > 0 ? `, which own ${bytes(heap.native)} of native memory` : "";
      card.append(h("p", { class: "headline" }, h("b", null, bytes(heap.shallow)), h("span", { class: "soft" }, ` in ${counted(heap.objects, "reachable Java object")}${of}${native}`)));
      if (heap.unreachable > heap.shallow + heap.native) {
        card.append(h("p", { class: "unseen-words" }, h("b", { "aria-hidden": "true" }, "! "), `Most of this heap is unreachable: ${bytes(heap.unreachable)} more.`));
      }
    }
  }
  if (header.unseen.length > 0) {
    const words = header.unseen.map((each) => `${sanitize(each.what)}${each.bytes ? ` (${bytes(each.bytes)})` : ""}`).join(", ");
    card.append(h("p", { class: "unseen-words" }, h("b", { "aria-hidden": "true" }, "! "), "Outside this profile: ", words, "."));
  }
  return card;
}

function growthCard(rows: GrowthRow[], total: GrowthTotal | null, reason: string, events: SummaryEvents): HTMLElement {
  const card = h("section", { class: "card", "aria-label": "Growth" }, h("h2", null, "Growth"));
  if (!total) {
    card.append(h("p", { class: "soft" }, reason));
    return card;
  }
  card.append(
    h("p", { class: "headline" }, h("b", null, signed(total.value, "bytes")), h("span", { class: "soft" }, ` ${sanitize(total.from)} → ${sanitize(total.to)}`)),
    h(
      "ol",
      { class: "ranked" },
      ...rows.slice(0, 3).map((row) => {
        const item = button("", { class: "link", title: sanitize(row.says), onclick: () => events.grown(row) });
        item.append(name(row.label), h("b", null, signed(row.value, "bytes")), h("span", { class: `tag ${row.verdict}` }, VERDICTS[row.verdict] ?? row.verdict));
        return h("li", null, item);
      }),
    ),
    rows.length === 0 ? h("p", { class: "soft" }, "Nothing grew beyond sampling error.") : "",
    legend(rows.slice(0, 3).map((row) => row.verdict)),
    button("Show the difference", { onclick: () => events.compare() }),
  );
  return card;
}

/** Leaked class, and the retained bytes of its leaked objects in each dump of its process; null if a dump has none. */
interface Leak {
  name: string;
  retained: (number | null)[];
}

/** Returns the most severe leak of each Java heap, without duplicates, the largest of the last dumps first. */
function worstLeaks(header: Header): Leak[] {
  const heaps = header.java ?? [];
  const leaks = new Map<string, Leak>();
  for (const { process, leaks: found } of heaps) {
    const worst = found[0];
    const key = `${process ?? ""}\n${worst?.class}`;
    if (!worst || leaks.has(key)) continue;
    const dumps = heaps.filter((other) => other.process === process);
    const retained = dumps.map((dump) => {
      const same = dump.leaks.filter((leak) => leak.class === worst.class);
      return same.length === 0 ? null : same.reduce((sum, leak) => sum + leak.retained, 0);
    });
    leaks.set(key, { name: worst.class, retained });
  }
  const last = ({ retained }: Leak): number => retained[retained.length - 1] ?? 0;
  return [...leaks.values()].sort((a, b) => last(b) - last(a));
}

function nextCard(header: Header, events: SummaryEvents): HTMLElement {
  const card = h("section", { class: "card", "aria-label": "Where to look next" }, h("h2", null, "Where to look next"));
  const list = h("ul", { class: "ranked" });
  const go = (words: string, tab: Tab | "leaks", tag: string | null = null, urgent = false, title: string | null = null): void => {
    const item = button("", { class: "link", title, onclick: () => (tab === "leaks" ? events.leaks() : events.tab(tab)) });
    item.append(h("bdi", null, words));
    if (tag) item.append(h("span", { class: `tag ${urgent ? "bad" : ""}` }, tag));
    list.append(h("li", null, item));
  };
  for (const leak of worstLeaks(header)) {
    const sizes = leak.retained.map((size) => (size === null ? "–" : bytes(size)));
    const first = sizes[0]!;
    const last = sizes[sizes.length - 1]!;
    const tag = sizes.length === 1 ? first : `${first} → ${last}`;
    go(`Leaked: ${sanitize(leak.name)}`, "leaks", tag, true, sizes.length > 1 ? `Retained in each dump: ${sizes.join(", ")}` : null);
  }
  if (header.reconcile && header.reconcile.length > 0) go("Why heapprofd, meminfo and RSS differ", "info");
  if (header.warnings.length > 0) {
    const first = sanitize(header.warnings[0]!.message);
    go(first.length > 90 ? `${first.slice(0, 90)}…` : first, "info", counted(header.warnings.length, "warning"), true);
  }
  const names = header.symbolization;
  if (names && names.missing.length > 0) {
    const affected = names.share_unnamed ? `${percent(names.share_unnamed, 1)} of the bytes` : counted(names.frames_unnamed, "frame");
    go(`${counted(names.missing.length, "library", "libraries")} without symbols`, "info", affected);
  }
  if (header.dumps.length > 0) {
    go("Largest functions", "functions");
    go("Largest libraries", "libraries");
  }
  // Without native heaps, the page opens there.
  if (header.java && header.java.length > 0 && (header.dumps.length > 0 || !list.hasChildNodes())) go("Java heap", "java");
  card.append(list);
  return card;
}

/** Returns what is known of summed callsites. */
function summedBy({ functions, libraries }: NonNullable<Header["folded"]>): string {
  if (functions) return "library and function";
  return libraries ? "library, without functions" : "the library that owns the memory, without its callers";
}

/** Returns the note about summed callsites and their part of a dump; null if all callsites are listed. */
export function summedNote({ folded, dumps }: Header, place: number): HTMLElement | null {
  if (!folded) return null;
  const measure = dumps[place]?.measures[dumps[place]!.default_measure];
  const summed = folded.bytes[place];
  const share = measure && summed !== undefined ? `, ${amount(summed, measure.unit)} of ${amount(measure.total, measure.unit)} (${percent(summed, measure.total)}) in this dump` : "";
  return h(
    "p",
    { class: "warn" },
    `This page lists ${thousands(folded.kept)} of ${counted(folded.of, "callsite")} individually. The others have the fewest bytes${share}: they are summed as “(other)” by ${summedBy(folded)}. Totals are exact. To list all callsites, run `,
    h("code", null, name(folded.command)),
    ".",
  );
}

export function summary(
  header: Header,
  place: number,
  /** Index of the shown dump. */
  shownDump: number,
  rows: GrowthRow[],
  total: GrowthTotal | null,
  /** Reason why there is no total. */
  reason: string,
  events: SummaryEvents,
): HTMLElement {
  return h(
    "div",
    { class: "cards" },
    memoryCard(header, place, shownDump),
    header.dumps.length > 0 ? growthCard(rows, total, reason, events) : null,
    nextCard(header, events),
  );
}
