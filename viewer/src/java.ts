// Java heaps: classes and packages, who keeps whom alive, and objects that should be gone with
// the way that still holds each.

import { fill, h, name } from "./dom";
import type { JavaHeap, JavaRows, JavaStep, JavaSuspect } from "./format";
import { Table } from "./table";
import { bar } from "./treeview";
import { bytes, thousands } from "./units";

interface ClassRow {
  name: string;
  count: number;
  shallow: number;
  native: number;
  retained: number;
}

interface Node {
  row: number;
  level: number;
  parent: Node | null;
  place: number;
  of: number;
  children: Node[];
}

type Page = "histogram" | "packages" | "dominators" | "tree" | "largest";

const PAGES: { page: Page; title: string }[] = [
  { page: "histogram", title: "Classes" },
  { page: "packages", title: "Packages" },
  { page: "dominators", title: "Dominator tree" },
  { page: "tree", title: "Retained by class" },
  { page: "largest", title: "Largest objects" },
];

/** Preorder columns with pops as a tree. */
function nodesOf(pops: number[]): Node[] {
  const roots: Node[] = [];
  const path: Node[] = [];
  pops.forEach((pop, row) => {
    if (pop > 0) path.length = Math.max(0, path.length - pop);
    const parent = path[path.length - 1] ?? null;
    const siblings = parent ? parent.children : roots;
    const node: Node = { row, level: path.length + 1, parent, place: siblings.length, of: 0, children: [] };
    siblings.push(node);
    path.push(node);
  });
  const count = (siblings: Node[]): void => siblings.forEach((node) => (node.of = siblings.length));
  const rest = [roots];
  while (rest.length > 0) {
    const siblings = rest.pop()!;
    count(siblings);
    for (const node of siblings) if (node.children.length > 0) rest.push(node.children);
  }
  return roots;
}

export class JavaView {
  readonly element: HTMLElement;
  private readonly host = h("div", { class: "fill" });
  private readonly filter: HTMLInputElement;
  private readonly buttons: { page: Page; button: HTMLButtonElement }[];
  private page: Page = "histogram";
  private heap: JavaHeap | null = null;
  private refill: (() => void) | null = null;

  constructor() {
    this.buttons = PAGES.map(({ page, title }) => ({
      page,
      button: h("button", { type: "button", onclick: () => this.turn(page) }, title),
    }));
    this.filter = h("input", {
      type: "search",
      placeholder: "Filter classes",
      "aria-label": "Filter rows by class",
      oninput: () => this.refill?.(),
    });
    this.element = h(
      "div",
      { class: "pane" },
      h(
        "div",
        { class: "bar" },
        h("div", { class: "segments", role: "group", "aria-label": "Java heap" }, ...this.buttons.map((each) => each.button)),
        this.filter,
      ),
      this.host,
    );
  }

  show(heap: JavaHeap): void {
    if (heap === this.heap) return;
    this.heap = heap;
    this.turn(this.page);
  }

  private text(index: number | null | undefined): string {
    return index === null || index === undefined ? "" : (this.heap!.strings[index] ?? "");
  }

  private turn(page: Page): void {
    this.page = page;
    for (const each of this.buttons) each.button.setAttribute("aria-pressed", String(each.page === page));
    this.filter.hidden = page !== "histogram" && page !== "packages";
    this.refill = null;
    const heap = this.heap!;
    if (page === "histogram") this.classes(heap.histogram, "Class");
    else if (page === "packages") this.classes(heap.packages, "Package");
    else if (page === "dominators") this.dominators(heap);
    else if (page === "tree") this.byClass(heap);
    else this.largest(heap);
  }

  private classes(columns: JavaRows, title: string): void {
    const rows: ClassRow[] = columns.name.map((text, i) => ({
      name: this.text(text),
      count: columns.count[i]!,
      shallow: columns.shallow[i]!,
      native: columns.native[i]!,
      retained: columns.retained[i]!,
    }));
    const whole = rows.reduce((sum, row) => sum + row.shallow + row.native, 0);
    const values: Record<string, (row: ClassRow) => number | string> = {
      name: (row) => row.name,
      count: (row) => row.count,
      shallow: (row) => row.shallow,
      native: (row) => row.native,
      retained: (row) => row.retained,
    };
    let sort = { column: "retained", descending: true };
    const native = rows.some((row) => row.native > 0);
    const table = new Table<ClassRow>(
      [
        { id: "name", title, sort: values["name"]!, cell: (row) => name(row.name) },
        { id: "count", title: "Objects", numeric: true, sort: values["count"]!, cell: (row) => thousands(row.count) },
        { id: "shallow", title: "Shallow", hint: "The objects alone", numeric: true, sort: values["shallow"]!, cell: (row) => bytes(row.shallow) },
        ...(native
          ? [{ id: "native", title: "Native", hint: "Memory outside the Java heap that they own", numeric: true, sort: values["native"]!, cell: (row: ClassRow) => bytes(row.native) }]
          : []),
        { id: "retained", title: "Retained", hint: "What would be free if they were", numeric: true, sort: values["retained"]!, cell: (row) => bytes(row.retained) },
        { id: "share", title: "Share", numeric: true, cell: (row) => bar(row.retained, whole) },
      ],
      {
        label: title === "Class" ? "Histogram of classes" : "Packages",
        sorted: (column, descending) => {
          sort = { column, descending };
          this.refill?.();
        },
        empty: "No class matches.",
      },
    );
    table.markSort(sort.column, true);
    this.refill = () => {
      const wanted = this.filter.value.trim().toLowerCase();
      const listed = wanted ? rows.filter((row) => row.name.toLowerCase().includes(wanted)) : rows.slice();
      const value = values[sort.column]!;
      const sign = sort.descending ? -1 : 1;
      listed.sort((a, b) => (value(a) < value(b) ? -sign : value(a) > value(b) ? sign : a.name < b.name ? -1 : 1));
      table.show(listed);
    };
    fill(this.host, table.element);
    this.refill();
  }

  private unfolding(
    pops: number[],
    columns: ConstructorParameters<typeof Table<Node>>[0],
    label: string,
    note: string | null,
  ): void {
    const roots = nodesOf(pops);
    const open = new Set<Node>();
    const table = new Table<Node>(columns, {
      label,
      level: (node) => ({
        level: node.level,
        place: node.place,
        of: node.of,
        expanded: node.children.length === 0 ? null : open.has(node),
      }),
      toggle: (node, now) => {
        if (now) open.add(node);
        else open.delete(node);
        list(node);
      },
      activate: (node) => {
        if (open.has(node)) open.delete(node);
        else open.add(node);
        list(node);
      },
      empty: "Nothing is recorded.",
    });
    const list = (active: Node | null): void => {
      const rows: Node[] = [];
      const rest = roots.slice().reverse();
      while (rest.length > 0) {
        const node = rest.pop()!;
        rows.push(node);
        if (open.has(node)) for (let i = node.children.length - 1; i >= 0; i--) rest.push(node.children[i]!);
      }
      table.show(rows, active);
    };
    if (roots.length === 1) open.add(roots[0]!);
    fill(this.host, note ? h("p", { class: "hint" }, note) : null, table.element);
    list(null);
  }

  private dominators(heap: JavaHeap): void {
    const tree = heap.dominators;
    if (!tree) return this.none("No dominator tree was computed for this heap.");
    const whole = tree.retained.reduce((most, value) => Math.max(most, value), 0);
    this.unfolding(
      tree.pop,
      [
        {
          id: "label",
          title: "Object",
          cell: (node) => {
            const id = tree.id[node.row];
            const count = tree.count[node.row]!;
            const text = h("span", null, name(this.text(tree.label[node.row])));
            if (id) text.append(h("span", { class: "soft" }, ` ${id}`));
            if (count > 1) text.append(h("span", { class: "soft" }, ` × ${thousands(count)}`));
            return text;
          },
        },
        { id: "retained", title: "Retained", numeric: true, cell: (node) => bytes(tree.retained[node.row]!) },
        { id: "share", title: "Share", numeric: true, cell: (node) => bar(tree.retained[node.row]!, whole) },
        { id: "shallow", title: "Shallow", numeric: true, cell: (node) => bytes(tree.shallow[node.row]!) },
        { id: "below", title: "Objects below", numeric: true, cell: (node) => thousands(tree.below[node.row]!) },
      ],
      "Dominator tree: who keeps whom alive",
      tree.left_out > 0 ? `${thousands(tree.left_out)} small objects have no row of their own; they count in what keeps them.` : null,
    );
  }

  private byClass(heap: JavaHeap): void {
    const { tree } = heap;
    if (!tree) return this.none("No tree by class was computed for this heap.");
    const whole = tree.bytes.reduce((most, value) => Math.max(most, value), 0);
    this.unfolding(
      tree.pop,
      [
        { id: "label", title: "Class", cell: (node) => name(this.text(tree.label[node.row])) },
        { id: "bytes", title: "With all below", numeric: true, cell: (node) => bytes(tree.bytes[node.row]!) },
        { id: "share", title: "Share", numeric: true, cell: (node) => bar(tree.bytes[node.row]!, whole) },
        { id: "count", title: "Objects", numeric: true, cell: (node) => thousands(tree.count[node.row]!) },
      ],
      "Retained memory by class",
      "The dominator tree with the children of one class merged: below each class what only its objects keep alive.",
    );
  }

  private largest(heap: JavaHeap): void {
    if (heap.largest.length === 0) return this.none("No object retains anything worth a row.");
    fill(
      this.host,
      h(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": "Largest objects" },
        ...heap.largest.map((object) =>
          h(
            "details",
            { class: "card" },
            h("summary", null, h("b", { class: "figure" }, bytes(object.retained)), " ", name(this.text(object.label)), object.id ? h("span", { class: "soft" }, ` ${object.id}`) : null),
            this.path(object.path, null),
          ),
        ),
      ),
    );
  }

  private none(words: string): void {
    fill(this.host, h("p", { class: "empty" }, words));
  }

  private path(steps: JavaStep[], root: string | null): HTMLElement {
    return h(
      "ol",
      { class: "path" },
      root ? h("li", { class: "soft" }, name(root)) : null,
      ...steps.map((step) => {
        const reason = this.text(step.reason);
        const reference = this.text(step.reference);
        return h(
          "li",
          { class: step.status === "leaking" ? "leaking" : null },
          name(this.text(step.class)),
          // The reference that should not be there, as heaptap's own tables underline it.
          reference ? h("code", { class: step.suspect ? "suspect" : null }, name(`.${reference}`)) : null,
          step.status ? " " : null,
          step.status ? h("span", { class: `tag ${step.status}` }, step.status.replace(/-/g, " ")) : null,
          reason ? h("span", { class: "soft" }, " ", name(reason)) : null,
        );
      }),
    );
  }

  /** The suspects, on a page of their own. */
  suspects(heap: JavaHeap): HTMLElement {
    this.heap = this.heap ?? heap;
    const before = this.heap;
    this.heap = heap;
    const one = (suspect: JavaSuspect, place: number): HTMLElement =>
      h(
        "details",
        { class: "card", open: place === 0 || heap.suspects.length <= 3 },
        h(
          "summary",
          null,
          h("b", { class: "figure" }, bytes(suspect.retained)),
          " ",
          suspect.count > 1 ? `${thousands(suspect.count)} × ` : null,
          name(this.text(suspect.class)),
          " ",
          h("span", { class: `tag ${suspect.certainty}` }, suspect.certainty),
          " ",
          h("span", { class: "soft" }, suspect.what.replace(/-/g, " "), suspect.of_platform ? ", of the platform" : ""),
        ),
        suspect.advice !== null && suspect.advice !== undefined ? h("p", null, name(this.text(suspect.advice))) : null,
        this.path(suspect.path, this.text(suspect.root) || null),
      );
    const page = h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Leak suspects" },
      heap.suspects.length === 0
        ? h("p", { class: "empty" }, "No object was found that should be gone.")
        : h("p", { class: "hint" }, "Objects that should be gone, and by which way a root still reaches them."),
      ...heap.suspects.map(one),
      ...(heap.unheld ?? []).map((each) =>
        h("p", { class: "hint" }, `${thousands(each.count)} × `, name(this.text(each.class)), `: ${each.what}`),
      ),
      ...(heap.notes ?? []).map((note) => h("p", { class: "hint" }, name(note))),
      ...heap.warnings.map((warning) => h("p", { class: "warn" }, name(warning.message), warning.help ? h("span", null, " ", name(warning.help)) : null)),
    );
    this.heap = before;
    return page;
  }
}
