// SQL over the tables of `heaptap query`. Rows link to objects.

import { inert } from "../copy";
import { button, fill, h, name, sentence } from "../dom";
import { counted, thousands } from "../units";
import { ask, messageOf, type SqlRows, type SqlValue } from "./api";
import { encode, type Place } from "./place";
import { choices } from "./rows";

const EXAMPLES: [string, string][] = [
  ["Largest objects", "SELECT address, class, retained_bytes, retained_native_bytes FROM heaptap_java_object ORDER BY retained_bytes + retained_native_bytes DESC LIMIT 20"],
  ["Classes", "SELECT * FROM heaptap_java_class ORDER BY retained_bytes + retained_native_bytes DESC LIMIT 50"],
  ["Long strings", "SELECT address, length(text) AS length, text FROM heaptap_java_object WHERE class = 'java.lang.String' ORDER BY length DESC LIMIT 20"],
  ["Tables", "SELECT name FROM sqlite_master ORDER BY name"],
  ["Columns of a table", "SELECT name, type FROM pragma_table_info('heaptap_java_object')"],
];

/** Returns the view; the statement is a part of the place, so that a link has it. */
export async function sqlView(place: Place, signal: AbortSignal): Promise<HTMLElement> {
  const field = h("textarea", { rows: 5, spellcheck: "false", "aria-label": "SQL" });
  field.value = place.sql ?? EXAMPLES[0]![1];
  const run = (): void => {
    if (field.value.trim() === "") {
      fill(result, h("p", { class: "soft" }, "Enter a statement."));
      return;
    }
    const next = encode({ view: "sql", sql: field.value });
    if (next === location.hash) void show(field.value);
    else location.hash = next;
  };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      run();
    }
  });
  const result = h("div");
  // The server ends a statement when a later one comes: only the last has a result.
  let last = 0;
  const show = async (sql: string): Promise<void> => {
    const turn = ++last;
    fill(result, h("p", { class: "soft", role: "status" }, "Running …"));
    try {
      const rows = await ask<SqlRows>("sql", { sql }, signal);
      if (turn === last) fill(result, table(rows));
    } catch (error) {
      if (turn === last && !signal.aborted) fill(result, h("p", { class: "failed", role: "alert" }, name(messageOf(error))));
    }
  };
  if (place.sql) void show(place.sql);
  return h(
    "div",
    { class: "sql" },
    h("p", { class: "soft" }, sentence("The tables are those of `heaptap query`. `retained_bytes` does not include native bytes, which are in `retained_native_bytes`. The other views show the sum of both as retained.")),
    choices("Examples", EXAMPLES.map(([title, sql]) => [title, { view: "sql", sql }, sql === place.sql])),
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
  const isNumeric = (at: number): boolean => !isAddress[at] && of.rows.some((row) => row[at] !== null) && of.rows.every((row) => row[at] === null || typeof row[at] !== "string");
  return h(
    "div",
    { class: "paged" },
    h(
      "p",
      { class: "soft" },
      h("span", { role: "status" }, of.is_cut ? `The first ${thousands(of.rows.length)} rows. ` : `${counted(of.rows.length, "row")}. `),
      copy("Copy as TSV", of, "\t"),
      " ",
      copy("Copy as CSV", of, ","),
    ),
    h(
      "div",
      { class: "grid", tabindex: 0, role: "region", "aria-label": "Result" },
      h(
        "table",
        null,
        h("thead", null, h("tr", null, ...of.columns.map((column, at) => h("th", { scope: "col", class: isNumeric(at) ? "n" : null }, name(column))))),
        h("tbody", null, ...of.rows.map((row) => h("tr", null, ...row.map(cell)))),
      ),
    ),
  );
}

function shown(value: SqlValue, isAddress: boolean): Node | string {
  if (value === null) return h("span", { class: "soft" }, "NULL");
  if (typeof value === "object") return h("a", { href: encode({ view: "object", id: value.object }) }, String(value.value));
  const id = isAddress ? addressOf(value) : null;
  return id === null ? name(String(value)) : h("a", { href: encode({ view: "object", id }) }, id);
}

/** Returns an address in hexadecimal digits; null for other values. SQLite has signed integers. */
function addressOf(value: number | string): string | null {
  return /^-?\d+$/.test(String(value)) ? `0x${BigInt.asUintN(64, BigInt(value)).toString(16)}` : null;
}

/** Returns the text of a value in a file. */
function plain(value: SqlValue, isAddress: boolean): string {
  if (value === null) return "";
  if (isAddress && typeof value !== "object") return addressOf(value) ?? String(value);
  if (typeof value === "object") return String(value.value);
  // Large integers are texts.
  return typeof value === "number" || /^-?\d+$/.test(value) ? String(value) : inert(value);
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
      const lines = [of.columns.map(inert), ...of.rows.map((row) => row.map((value, at) => plain(value, of.columns[at] === "address")))].map((line) => line.map(field).join(separator));
      navigator.clipboard.writeText(`${lines.join("\n")}\n`).then(
        () => (made.textContent = "Copied"),
        () => (made.textContent = "Cannot copy: the browser denied access to the clipboard"),
      );
    },
  });
  return made;
}
