// Elements without markup: text only ever becomes text.

import { shown } from "./names";

type Child = Node | string | number | null | undefined | false;

interface Attributes {
  class?: string | null;
  title?: string | null;
  id?: string | null;
  onclick?: (event: MouseEvent) => void;
  [name: string]: unknown;
}

/** An element with attributes (`on…` are listeners, false and null are left out) and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes | null = null,
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value as EventListener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  put(element, ...children);
  return element;
}

/** Appends children. */
export function put(parent: Node, ...children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Replaces all children. */
export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  put(parent, ...children);
}

/** A foreign name: unseen characters spelled out, its direction kept to itself. */
export function name(text: string): HTMLElement {
  return h("bdi", null, shown(text));
}

/** A button with a text or a symbol, and what it does for those who can't see it. */
export function button(label: string, attributes: Attributes): HTMLButtonElement {
  return h("button", { type: "button", ...attributes }, label);
}

const NS = "http://www.w3.org/2000/svg";

/** An SVG element. */
export function svg(tag: string, attributes: Record<string, string | number>, ...children: Child[]): SVGElement {
  const element = document.createElementNS(NS, tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  put(element, ...children);
  return element;
}
