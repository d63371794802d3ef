// Java heaps: classes and packages, the dominator tree, and leaked objects with their paths from GC
// roots.

import { fill, h, name, sentence } from "./dom";
import type { JavaChange, JavaHeap, JavaRows, JavaSizes, JavaStep, JavaSuspect } from "./format";
import { Table } from "./table";
import { bar } from "./treeview";
import { bytes, counted, signed, thousands } from "./units";

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

/** Class in both dumps. */
interface ChangedClass {
  at: number;
  name: string;
}

type Page = "growth" | "histogram" | "packages" | "dominators" | "tree" | "largest";

const PAGES: { page: Page; title: string }[] = [
  { page: "growth", title: "Growth" },
  { page: "histogram", title: "Classes" },
  { page: "packages", title: "Packages" },
  { page: "dominators", title: "Dominator tree" },
  { page: "tree", title: "Retained by class" },
  { page: "largest", title: "Largest objects" },
];

/** Labels of a step's status; the same as in `heaptap leaks`. */
const STATUSES: Record<string, string> = { leaking: "leaks", "not-leaking": "in use" };

/** Returns the tree of preorder columns with pops. */
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
  /** Whether the current heap is compared with another dump. */
  private compared = false;

  constructor() {
    this.buttons = PAGES.map(({ page, title }) => ({
      page,
      button: h("button", { type: "button", onclick: () => this.showPage(page) }, title),
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
    const compared = heap.change !== undefined;
    this.buttons.find(({ page }) => page === "growth")!.button.hidden = !compared;
    if (compared && !this.compared) this.page = "growth";
    else if (!compared && this.page === "growth") this.page = "histogram";
    this.compared = compared;
    this.showPage(this.page);
  }

  private text(index: number | null | undefined): string {
    return index === null || index === undefined ? "" : (this.heap!.strings[index] ?? "");
  }

  private showPage(page: Page): void {
    this.page = page;
    for (const each of this.buttons) each.button.setAttribute("aria-pressed", String(each.page === page));
    this.filter.hidden = page !== "histogram" && page !== "packages" && page !== "growth";
    this.refill = null;
    const heap = this.heap!;
    if (page === "growth" && heap.change) this.growth(heap.change);
    else if (page === "histogram") this.classes(heap.histogram, "Class");
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
        { id: "shallow", title: "Shallow", hint: "Size of the objects themselves", numeric: true, sort: values["shallow"]!, cell: (row) => bytes(row.shallow) },
        ...(native
          ? [{ id: "native", title: "Native", hint: "Native memory owned by the objects", numeric: true, sort: values["native"]!, cell: (row: ClassRow) => bytes(row.native) }]
          : []),
        { id: "retained", title: "Retained", hint: "Size freed with the objects", numeric: true, sort: values["retained"]!, cell: (row) => bytes(row.retained) },
        { id: "share", title: "Share", numeric: true, cell: (row) => bar(row.retained, whole) },
      ],
      {
        label: title === "Class" ? "Classes" : "Packages",
        sorted: (column, descending) => {
          sort = { column, descending };
          this.refill?.();
        },
        empty: title === "Class" ? "No classes match." : "No packages match.",
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

  /** Shows changes since another dump, and the paths from the objects of the selected class to GC roots. */
  private growth(change: JavaChange): void {
    const more = (of: keyof JavaSizes, at: number): number => change.after[of][at]! - change.before[of][at]!;
    const own = (at: number): number => more("shallow", at) + more("native", at);
    const rows: ChangedClass[] = change.name.map((text, at) => ({ at, name: this.text(text) }));
    const size = (id: string, title: string, hint: string, value: (at: number) => number, show = (n: number): string => signed(n, "bytes")) => ({
      id,
      title,
      hint,
      numeric: true,
      sort: ({ at }: ChangedClass) => value(at),
      cell: ({ at }: ChangedClass) => (value(at) === 0 ? "–" : show(value(at))),
    });
    const columns = [
      {
        id: "name",
        title: "Class",
        sort: (row: ChangedClass) => row.name,
        cell: (row: ChangedClass) => {
          const status = change.status[row.at]!;
          const text = h("span", null, name(row.name));
          if (status === "new" || status === "gone") text.append(" ", h("span", { class: "tag" }, status));
          return text;
        },
      },
      size("count", "Objects", "Change in the number of objects", (at) => more("count", at), (n) => (n > 0 ? "+" : "") + thousands(n)),
      size("own", "Shallow + native", "Change in the size of the objects and of the native memory that they own", own),
      size("retained", "Retained", "Change in the size freed with the objects", (at) => more("retained", at)),
      size("before", "Before", "Number of objects before", (at) => change.before.count[at]!, thousands),
      size("now", "Now", "Number of objects now", (at) => change.after.count[at]!, thousands),
    ];
    let sort = { column: "own", descending: true };
    const below = h("section", { class: "held", "aria-label": "Paths to GC roots" });
    const table = new Table<ChangedClass>(columns, {
      label: "Changed classes",
      sorted: (column, descending) => {
        sort = { column, descending };
        this.refill?.();
      },
      select: (row) => this.showPaths(below, change, row),
      activate: (row) => this.showClass(row.name),
      empty: change.name.length === 0 ? "No classes changed." : "No classes match.",
    });
    table.markSort(sort.column, true);
    this.refill = () => {
      const wanted = this.filter.value.trim().toLowerCase();
      const listed = rows.filter((row) => row.name.toLowerCase().includes(wanted));
      const value = columns.find(({ id }) => id === sort.column)!.sort;
      const sign = sort.descending ? -1 : 1;
      listed.sort((a, b) => (value(a) < value(b) ? -sign : value(a) > value(b) ? sign : a.name < b.name ? -1 : 1));
      table.show(listed);
    };
    const page = h(
      "div",
      { class: "growth" },
      h("p", { class: "headline" }, h("b", null, change.headline), h("span", { class: "soft" }, " since ", name(change.since))),
      change.of_two_kinds ? h("p", { class: "hint" }, "The dumps are of different kinds, which differ in their GC roots and in the sizes of arrays and strings.") : null,
      table.element,
      below,
    );
    fill(this.host, page);
    this.refill();
    const first = rows.find((row) => own(row.at) > 0);
    if (first) table.reveal(first);
  }

  private showClass(text: string): void {
    this.filter.value = text;
    this.showPage("histogram");
  }

  private showPaths(host: HTMLElement, change: JavaChange, row: ChangedClass): void {
    const text = change.name[row.at]!;
    const paths = change.held.find((each) => each.class === text);
    const now = change.after.count[row.at]!;
    const title = h(
      "p",
      { class: "bar" },
      h("b", null, `${thousands(now)} × `, name(row.name)),
      now > 0 ? h("button", { type: "button", onclick: () => this.showClass(row.name) }, "Show in Classes") : null,
    );
    if (!paths || paths.pop.length === 0) {
      const reason = now === 0 ? "No objects are left." : "The page contains paths only for the classes that grew the most. For other classes, run ";
      return fill(host, title, h("p", { class: "hint" }, reason, now === 0 ? null : h("code", null, "heaptap paths"), now === 0 ? null : "."));
    }
    const tree = h("div");
    fill(host, title, tree);
    this.showTree(
      paths.pop,
      [
        {
          id: "label",
          title: "Referenced by",
          cell: (node) => {
            const root = this.text(paths.root[node.row]);
            return h("span", null, name(this.text(paths.label[node.row])), root ? h("span", { class: "soft" }, " root: ", name(root)) : null);
          },
        },
        { id: "count", title: "Objects", numeric: true, cell: (node) => thousands(paths.count[node.row]!) },
      ],
      `Paths from ${row.name} to GC roots`,
      null,
      tree,
    );
  }

  private showTree(
    pops: number[],
    columns: ConstructorParameters<typeof Table<Node>>[0],
    label: string,
    note: string | null,
    host: HTMLElement = this.host,
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
      empty: "No data.",
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
    // Paths to GC roots are open up to the first fork, unless that is a long list.
    let levels = host === this.host ? 1 : 40;
    for (let siblings = roots; siblings.length === 1 && levels > 0; siblings = siblings[0]!.children, levels--) open.add(siblings[0]!);
    fill(host, note ? h("p", { class: "hint" }, note) : null, table.element);
    list(null);
  }

  private dominators(heap: JavaHeap): void {
    const tree = heap.dominators;
    if (!tree) return this.showEmpty("This page does not contain a dominator tree of this heap.");
    const whole = tree.retained.reduce((most, value) => Math.max(most, value), 0);
    this.showTree(
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
        { id: "below", title: "Dominated objects", numeric: true, cell: (node) => thousands(tree.below[node.row]!) },
      ],
      "Dominator tree",
      tree.left_out > 0 ? `${counted(tree.left_out, "small object")} ${tree.left_out === 1 ? "is" : "are"} not listed; the sizes of dominators include them.` : null,
    );
  }

  private byClass(heap: JavaHeap): void {
    const { tree } = heap;
    if (!tree) return this.showEmpty("This page does not contain a tree by class of this heap.");
    const whole = tree.bytes.reduce((most, value) => Math.max(most, value), 0);
    this.showTree(
      tree.pop,
      [
        { id: "label", title: "Class", cell: (node) => name(this.text(tree.label[node.row])) },
        { id: "bytes", title: "Retained", numeric: true, cell: (node) => bytes(tree.bytes[node.row]!) },
        { id: "share", title: "Share", numeric: true, cell: (node) => bar(tree.bytes[node.row]!, whole) },
        { id: "count", title: "Objects", numeric: true, cell: (node) => thousands(tree.count[node.row]!) },
      ],
      "Retained memory by class",
      "The dominator tree, with children of one class merged. Below each class is what only its objects keep alive.",
    );
  }

  private largest(heap: JavaHeap): void {
    if (heap.largest.length === 0) return this.showEmpty("No large objects found.");
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
            this.referencePath(object.path, this.text(object.root)),
          ),
        ),
      ),
    );
  }

  private showEmpty(words: string): void {
    fill(this.host, h("p", { class: "empty" }, words));
  }

  /** Returns a path in which each reference precedes the step that it leads to. */
  private referencePath(steps: JavaStep[], root: string): HTMLElement {
    return h(
      "ol",
      { class: "path" },
      root ? h("li", { class: "soft" }, "root: ", name(root)) : null,
      ...steps.map((step) => {
        const reference = this.text(step.reference);
        return h(
          "li",
          null,
          step.left_out ? h("span", { class: "soft" }, `… ${thousands(step.left_out)} more … `) : null,
          reference ? h("code", null, "↓ ", name(reference)) : null,
          " ",
          name(this.text(step.class)),
        );
      }),
    );
  }

  private leakPath(steps: JavaStep[], root: string | null): HTMLElement {
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
          step.left_out ? h("span", { class: "soft" }, `… ${thousands(step.left_out)} more … `) : null,
          name(this.text(step.class)),
          // The suspected reference is underlined, as in the terminal.
          reference ? h("code", { class: step.suspect ? "suspect" : null }, name(`.${reference}`)) : null,
          step.status ? " " : null,
          step.status ? h("span", { class: `tag ${step.status}` }, STATUSES[step.status] ?? step.status) : null,
          reason ? h("span", { class: "soft" }, " ", name(reason)) : null,
        );
      }),
    );
  }

  /** Returns the page of leaks. */
  suspects(heap: JavaHeap): HTMLElement {
    const before = this.heap;
    this.heap = heap;
    const card = (suspect: JavaSuspect, place: number): HTMLElement =>
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
          h("span", { class: "soft" }, suspect.what.replace(/-/g, " "), suspect.of_platform ? " (platform leak)" : ""),
        ),
        suspect.advice !== null && suspect.advice !== undefined ? h("p", null, name(this.text(suspect.advice))) : null,
        this.leakPath(suspect.path, this.text(suspect.root) || null),
      );
    const page = h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Leaks" },
      heap.suspects.length === 0
        ? h("p", { class: "empty" }, "No leaks found: no object is still reachable after the end of its lifecycle.")
        : h("p", { class: "hint" }, "Objects that are still reachable after the end of their lifecycle, with a path from a GC root."),
      ...heap.suspects.map(card),
      ...(heap.unheld ?? []).map((each) =>
        h("p", { class: "hint" }, `${thousands(each.count)} × `, name(this.text(each.class)), ` (${each.what}): unreachable, not yet collected.`),
      ),
      ...(heap.notes ?? []).map((note) => h("p", { class: "hint" }, sentence(note))),
      ...heap.warnings.map((warning) => h("p", { class: "warn" }, sentence(warning.message), warning.help ? h("span", null, " ", sentence(warning.help)) : null)),
    );
    this.heap = before;
    return page;
  }
}
