// Paths from a GC root to an object.

import { h, name } from "../dom";
import { counted } from "../units";
import type { LeakGroup, LeakStep, Path, Verdict } from "./api";
import { objectName, verdictTag } from "./rows";

interface Step {
  id: string;
  name: string;
  /** Reference from the step before. */
  reference: string | null;
  isSuspect: boolean;
  /** Number of steps before it that are left out. */
  leftOut: number;
  verdict: Verdict;
}

/** Returns the path of an object. */
export function objectPath(path: Path): HTMLElement {
  if (path.steps.length === 0) return h("p", { class: "soft" }, "No GC root reaches the object. It is waiting for collection.");
  // Between the last object in use and the first leak, one reference is to blame.
  const leaking = path.steps.findIndex((step) => step.verdict.status === "leaking");
  const before = path.steps.slice(0, Math.max(leaking, 0)).map((step) => step.verdict.status);
  const inUse = Math.max(before.lastIndexOf("not-leaking"), 0);
  const steps = path.steps.map((step, at) => ({ ...step, isSuspect: leaking >= 0 && at > inUse && at <= leaking, leftOut: step.left_out }));
  return list(path.root ?? "GC root", steps);
}

/** Returns the path of a leak. */
export function leakPath({ root, path, path_left_out }: LeakGroup): HTMLElement {
  const steps = path.map((step, at): Step => {
    const last = path[at - 1];
    return {
      id: step.id,
      name: titleOf(step),
      reference: last ? referenceOf(last) : null,
      isSuspect: last?.suspect ?? false,
      leftOut: (step.left_out ?? 0) + (last ? 0 : path_left_out),
      verdict: { status: step.status, certainty: "confirmed", reason: step.reason },
    };
  });
  return list(root, steps);
}

function titleOf(step: LeakStep): string {
  return step.shape === "class" ? `class ${step.class}` : step.class;
}

/** Returns the reference from a step to the next, with its class as in the path of an object. */
function referenceOf(step: LeakStep): string | null {
  if (step.repeated || step.reference === null) return step.repeated?.text ?? null;
  const of = step.declared_in ?? step.class;
  return `${step.shape === "class" ? of : of.slice(of.lastIndexOf(".") + 1)}.${step.reference}`;
}

function list(root: string, steps: Step[]): HTMLElement {
  const rows = steps.flatMap((step) => {
    const reference = step.reference !== null && h("code", { class: step.isSuspect ? "suspect" : null }, name(step.reference));
    return [
      step.leftOut > 0 && h("li", { class: "soft" }, `… ${counted(step.leftOut, "step")} …`),
      h("li", null, reference, step.isSuspect && h("span", { class: "off-screen" }, " (suspected)"), reference && " → ", objectName(step.id, step.name), " ", h("code", { class: "soft" }, step.id), " ", verdictTag(step.verdict)),
    ];
  });
  return h("ol", { class: "path" }, h("li", { class: "soft" }, name(root)), ...rows);
}
