// The profile's, the allocator's and the system's figures side by side, with what lies between
// them: the last moment open, those before it folded.

import { h, name } from "./dom";
import type { ReconciledFacts } from "./format";
import { shown } from "./names";

function title(of: ReconciledFacts): string {
  const who = of.process ? `${of.process}${of.pid ? ` (${of.pid})` : ""}` : of.pid ? `process ${of.pid}` : "";
  return [of.at, who].filter(Boolean).join(", ");
}

function table(of: ReconciledFacts): HTMLElement {
  const apart = of.rows.some((row) => row.apart);
  const headings = ["Figure", "Bytes", ...(apart ? ["Read"] : []), "Source and meaning"];
  return h(
    "div",
    { class: "wide", tabindex: 0, role: "region", "aria-label": `Figures at ${shown(title(of))}` },
    h(
      "table",
      { class: "static" },
      h("caption", null, "From the memory requested by the program to the memory of the process"),
      h("thead", null, h("tr", null, ...headings.map((words, i) => h("th", { scope: "col", class: i === 1 ? "n" : null }, words)))),
      h(
        "tbody",
        null,
        ...of.rows.map((row) =>
          h(
            "tr",
            null,
            h("th", { scope: "row" }, name(row.name)),
            h("td", { class: "n" }, name(row.amount)),
            apart ? h("td", null, row.apart ?? "") : null,
            h("td", { class: "remark" }, name(row.remark)),
          ),
        ),
      ),
    ),
  );
}

function meaning(of: ReconciledFacts): HTMLElement {
  const help = (words: string | null | undefined): HTMLElement | null => (words ? h("div", { class: "soft" }, "→ ", name(words)) : null);
  return h(
    "div",
    { class: "between" },
    ...of.differences.flatMap((each) => [
      h("p", null, name(each.from), " → ", name(each.to), ": ", h("b", null, name(each.amount)), ", ", name(each.about)),
      h("ul", null, ...each.causes.map((cause) => h("li", null, name(cause.about), help(cause.remedy)))),
    ]),
    ...of.missing.map((each) => h("p", null, h("b", null, name(each.figure), " is missing: "), name(each.why), help(each.help))),
  );
}

/** A part for each moment; nothing where there is nothing to compare. */
export function reconciled(all: ReconciledFacts[]): HTMLElement[] {
  return all.map((of, place) =>
    h("details", { class: "card", open: place === 0 }, h("summary", null, "At ", name(title(of))), table(of), meaning(of)),
  );
}
