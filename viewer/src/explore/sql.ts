// SQL over the tables of `heaptap query`. Rows link to objects.

import { button, fill, h, name } from "../dom";
import { counted, thousands } from "../units";
import { ask, type SqlRows, type SqlValue } from "./api";
import { encode, type Place } from "./place";

const EXAMPLES: [string, string][] = [
  ["Largest objects", "SELECT address, class, retained_bytes FROM heaptap_java_object ORDER BY retained_bytes DESC LIMIT 20"],
  ["Classes", "SELECT * FROM heaptap_java_class ORDER BY retained_bytes DESC LIMIT 50"],
  ["Long strings", "SELECT address, length(text) AS length, text FROM heaptap_java_object WHERE class = 'java.lang.String' ORDER BY length DESC LIMIT 20"],
  ["Tables", "SELECT name FROM sqlite_master ORDER BY name"],
];

/** Returns the view; the statement is a part of the place, so that a link has it. */
export async function sqlView(place: Place, signal: AbortSignal): Promise<HTMLElement> {
  const field = h("textarea", { rows: 5, spellcheck: "false", "aria-label": "SQL" });
  field.value = place.filter ?? EXAMPLES[0]![1];
  const run = (): void => {
    const next = encode({ view: "sql", filter: field.value });
    if (next === location.hash) void show(field.value);
    else location.hash = next;
  };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      run();
    }
  });
  const result = h("div", { role: "status" });
  const show = async (sql: string): Promise<void> => {
    fill(result, h("p", { class: "soft" }, "Running …"));
    try {
      fill(result, table(await ask<SqlRows>("sql", { sql }, signal)));
    } catch (error) {
      if (!signal.aborted) fill(result, h("p", { class: "failed", role: "alert" }, name(error instanceof Error ? error.message : String(error))));
    }
  };
  if (place.filter) void show(place.filter);
  return h(
    "div",
    { class: "sql" },
    h("p", { class: "soft" }, "The tables are those of `heaptap query`: docs/reference/sql.md lists them."),
    h("nav", { class: "choices", "aria-label": "Examples" }, ...EXAMPLES.map(([title, sql]) => h("a", { href: encode({ view: "sql", filter: sql }) }, title))),
    field,
    h("p", null, button("Run", { onclick: run }), h("span", { class: "soft" }, " Ctrl+Enter")),
    result,
  );
}

function table(of: SqlRows): HTMLElement {
  if (of.columns.length === 0) return h("p", { class: "soft" }, "No rows.");
  const isAddress = of.columns.map((column) => column === "address");
  const cell = (value: SqlValue, at: number): HTMLElement => {
    const isNumber = typeof value === "number" || (typeof value === "object" && value !== null);
    return h("td", { class: isNumber && !isAddress[at] ? "n" : null }, shown(value, isAddress[at]!));
  };
  return h(
    "div",
    { class: "paged" },
    h(
      "p",
      { class: "soft" },
      of.is_cut ? `The first ${thousands(of.rows.length)} rows. ` : `${counted(of.rows.length, "row")}. `,
      copy("Copy as TSV", of, "\t"),
      " ",
      copy("Copy as CSV", of, ","),
    ),
    h(
      "div",
      { class: "grid", tabindex: 0, role: "region", "aria-label": "Result" },
      h(
        "table",
        { "aria-label": "Result" },
        h("thead", null, h("tr", null, ...of.columns.map((column) => h("th", { scope: "col" }, name(column))))),
        h("tbody", null, ...of.rows.map((row) => h("tr", null, ...row.map(cell)))),
      ),
    ),
  );
}

function shown(value: SqlValue, isAddress: boolean): Node | string {
  if (value === null) return h("span", { class: "soft" }, "NULL");
  if (typeof value === "object") return h("a", { href: encode({ view: "object", id: value.object }) }, String(value.value));
  if (isAddress) {
    const id = `0x${BigInt.asUintN(64, BigInt(value)).toString(16)}`;
    return h("a", { href: encode({ view: "object", id }) }, id);
  }
  return name(String(value));
}

/** Returns the text of a value in a file. */
function plain(value: SqlValue): string {
  if (value === null) return "";
  return String(typeof value === "object" ? value.value : value);
}

/** Returns a button that copies the rows. */
function copy(title: string, of: SqlRows, separator: "\t" | ","): HTMLElement {
  const field = (text: string): string => {
    // In values separated by tabs, nothing is quoted.
    if (separator === "\t") return text.replace(/[\t\r\n]+/g, " ");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const made = button(title, {
    onclick: () => {
      const lines = [of.columns, ...of.rows.map((row) => row.map(plain))].map((line) => line.map(field).join(separator));
      navigator.clipboard.writeText(`${lines.join("\n")}\n`).then(
        () => (made.textContent = "Copied"),
        () => (made.textContent = "The browser does not allow it"),
      );
    },
  });
  return made;
}
