// The Info page: facts of the recording, warnings, missing symbols, and memory outside the profile.
// Nothing is omitted, because values are misleading without their gaps.

import { button, h, name, sentence } from "./dom";
import { copyToClipboard } from "./copy";
import type { Header, Warning } from "./format";
import { sanitize } from "./names";
import { reconciled } from "./reconcile";
import { bytes, counted, percent, thousands } from "./units";

function warningOf(warning: Warning): HTMLElement {
  return h(
    "div",
    { class: "warn" },
    h("p", null, sentence(warning.message)),
    warning.help ? h("p", { class: "soft" }, sentence(warning.help)) : null,
  );
}

function formatTime(wall: number | null | undefined): string {
  if (!wall) return "";
  const date = new Date(wall);
  return Number.isFinite(date.getTime()) ? date.toISOString().replace("T", " ").replace(/\.\d+Z/, " UTC") : "";
}

export function infoPage(header: Header, say: (text: string) => void): HTMLElement {
  const page = h("div", { class: "scroll info", tabindex: 0, role: "region", "aria-label": "Recording" });
  const section = (title: string, ...children: (Node | null)[]): void => {
    page.append(h("section", null, h("h2", null, title), ...children));
  };
  section(
    header.warnings.length === 0 ? "Warnings: none" : `Warnings (${header.warnings.length})`,
    header.warnings.length === 0 ? h("p", { class: "hint" }, "The recording does not report any problems.") : null,
    ...header.warnings.map(warningOf),
  );
  section(
    "Memory outside this profile",
    header.unseen.length === 0 ? h("p", { class: "hint" }, "No memory is known to be missing.") : null,
    h(
      "dl",
      null,
      ...header.unseen.flatMap((each) => [
        h("dt", null, name(each.what), each.bytes ? h("span", { class: "soft" }, ` ${bytes(each.bytes)}`) : null),
        h("dd", null, sentence(each.why)),
      ]),
    ),
  );
  section("Recording", h("dl", null, ...header.facts.flatMap((fact) => [h("dt", null, name(fact.name)), h("dd", null, name(fact.value))])));
  const names = header.symbolization;
  if (names) {
    const all = names.frames_named + names.frames_unnamed;
    section(
      "Symbols",
      h(
        "p",
        null,
        `${thousands(names.frames_named)} of ${counted(all, "frame")} ${all === 1 ? "has" : "have"} a function name (${percent(names.frames_named, all)})`,
        names.frames_with_lines !== undefined ? `; ${counted(names.frames_with_lines, "frame")} ${names.frames_with_lines === 1 ? "has" : "have"} file and line.` : ".",
        names.share_unnamed ? ` ${percent(names.share_unnamed, 1)} of the bytes have a callstack with an unnamed frame.` : null,
      ),
      names.missing.length > 0
        ? h(
            "div",
            { class: "wide", tabindex: 0, role: "region", "aria-label": "Libraries without symbols" },
            h(
              "table",
              { class: "static" },
              h("caption", null, "Libraries without symbols, by bytes in callstacks that contain them"),
              h("thead", null, h("tr", null, h("th", { scope: "col" }, "Library"), h("th", { scope: "col" }, "Build ID"), h("th", { scope: "col", class: "n" }, "Frames"), h("th", { scope: "col", class: "n" }, "In stacks"))),
              h(
                "tbody",
                null,
                ...names.missing.map((library) =>
                  h(
                    "tr",
                    null,
                    h("td", null, name(library.path)),
                    h("td", null, h("code", null, name(library.build_id || "unknown"))),
                    h("td", { class: "n" }, thousands(library.frames)),
                    h("td", { class: "n" }, library.share === null ? "–" : percent(library.share, 1)),
                  ),
                ),
              ),
            ),
          )
        : null,
    );
  }
  if (header.dumps.length > 0) {
    section(
      "Dumps",
      h(
        "div",
        { class: "wide", tabindex: 0, role: "region", "aria-label": "Dumps" },
        h(
          "table",
          { class: "static" },
          h(
            "thead",
            null,
            h("tr", null, ...["#", "Label", "Process", "Heap", "Time (device clock)", "Sampling interval", "Callsites", "Total", "Notes"].map((title) => h("th", { scope: "col" }, title))),
          ),
          h(
            "tbody",
            null,
            ...header.dumps.map((dump) => {
              const measure = dump.measures[dump.default_measure];
              const notes = [
                ...dump.flags.map((flag) => flag.replace(/[_-]/g, " ")),
                dump.unfinished ? "incomplete: values are lower bounds" : "",
                dump.kind === "cumulative" ? "" : dump.kind === "at-maximum" ? "at the maximum" : dump.kind.replace(/-/g, " "),
              ].filter(Boolean);
              return h(
                "tr",
                null,
                h("td", null, dump.number),
                h("td", null, name(dump.label ?? "")),
                h("td", null, name(`${dump.process ?? ""}${dump.pid ? ` (${dump.pid})` : ""}`)),
                h("td", null, name(dump.heap ?? "")),
                h("td", null, formatTime(dump.wall_ms)),
                h("td", { class: "n" }, dump.interval === 1 ? "exact" : dump.interval ? bytes(dump.interval) : "unknown"),
                h("td", { class: "n" }, thousands(dump.callsites)),
                h("td", { class: "n" }, measure ? (measure.unit === "bytes" ? bytes(measure.total) : thousands(measure.total)) : "–"),
                h("td", null, notes.join(", ")),
              );
            }),
          ),
        ),
      ),
    );
  }
  const figures = header.reconcile ?? [];
  if (figures.length > 0) section("Why the figures differ", ...reconciled(figures));
  const commands = header.commands ?? [];
  if (commands.length > 0) {
    section(
      "Next steps",
      ...commands.map(({ what, command }) =>
        h(
          "p",
          { class: "command" },
          h("span", null, name(what)),
          h("code", null, name(command)),
          button("Copy", {
            "aria-label": `Copy the command: ${sanitize(what)}`,
            onclick: async () => say((await copyToClipboard(command)) ? "Command copied" : "Cannot copy: the browser denied access to the clipboard"),
          }),
        ),
      ),
    );
  }
  page.append(h("p", { class: "hint" }, `Page written by ${sanitize(header.tool)}${header.made_wall_ms ? `, ${formatTime(header.made_wall_ms)}` : ""}.`));
  return page;
}
