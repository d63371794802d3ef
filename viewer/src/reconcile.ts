// Values of the profile, the allocator and the system for a process side by side, with their
// differences. The last moment is open, and earlier ones are folded.

import { h, name, sentence } from "./dom";
import type { ReconciledFacts } from "./format";
import { sanitize } from "./names";

function title(of: ReconciledFacts): string {
  const who = of.process ? `${of.process}${of.pid ? ` (${of.pid})` : ""}` : of.pid ? `process ${of.pid}` : "";
  return [of.at, who].filter(Boolean).join(", ");
}

function table(of: ReconciledFacts): HTMLElement {
  const apart = of.rows.some((row) => row.apart);
  const headings = ["Figure", "Bytes", ...(apart ? ["Read"] : []), "Source and meaning"];
  return h(
    "div",
    { class: "wide", tabindex: 0, role: "region", "aria-label": `Figures at ${sanitize(title(of))}` },
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
            h("td", { class: "remark" }, sentence(row.remark)),
          ),
        ),
      ),
    ),
  );
}

function differences(of: ReconciledFacts): HTMLElement {
  const help = (words: string | null | undefined): HTMLElement | null => (words ? h("div", { class: "soft" }, "→ ", sentence(words)) : null);
  return h(
    "div",
    { class: "between" },
    ...of.differences.flatMap((each) => [
      h("p", null, name(each.from), " → ", name(each.to), ": ", h("b", null, name(each.amount)), ", ", sentence(each.about)),
      h("ul", null, ...each.causes.map((cause) => h("li", null, sentence(cause.about), help(cause.remedy)))),
    ]),
    ...of.missing.map((each) => h("p", null, h("b", null, name(each.figure), " is missing: "), sentence(each.why), help(each.help))),
  );
}

/** Returns one section per moment; empty if there is nothing to compare. */
export function reconciled(all: ReconciledFacts[]): HTMLElement[] {
  return all.map((of, place) =>
    h("details", { class: "card", open: place === 0 }, h("summary", null, "At ", name(title(of))), table(of), differences(of)),
  );
}
