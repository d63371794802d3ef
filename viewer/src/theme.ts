// Color theme: light, dark, or that of the system; light in print.

import { button } from "./dom";

type Choice = "auto" | "light" | "dark";

const LABELS: Record<Choice, string> = { auto: "Colors: system", light: "Colors: light", dark: "Colors: dark" };
const MARKS: Record<Choice, string> = { auto: "◐", light: "☀", dark: "☾" };
const KEY = "heaptap-theme";

export class ThemeSwitch {
  readonly button: HTMLButtonElement;
  private choice: Choice = "auto";

  constructor(private readonly changed: () => void) {
    try {
      const stored = localStorage.getItem(KEY);
      if (stored === "light" || stored === "dark") this.choice = stored;
    } catch {
      // A page from a file might not have storage.
    }
    this.button = button("", { class: "round", onclick: () => this.next() });
    this.apply(this.choice);
    for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
      matchMedia(query).addEventListener("change", () => this.changed());
    }
  }

  printing(on: boolean): void {
    this.apply(on ? "light" : this.choice);
    this.changed();
  }

  private next(): void {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const order: Choice[] = dark ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
    this.choice = order[(order.indexOf(this.choice) + 1) % order.length]!;
    try {
      if (this.choice === "auto") localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, this.choice);
    } catch {
      // Then the choice applies only to this page.
    }
    this.apply(this.choice);
    this.changed();
  }

  private apply(choice: Choice): void {
    if (choice === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = choice;
    this.button.textContent = MARKS[choice];
    this.button.title = LABELS[choice];
    this.button.setAttribute("aria-label", LABELS[choice]);
  }
}
