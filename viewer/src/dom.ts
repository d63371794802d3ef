// Elements without markup: texts become text nodes only.

import { sanitize } from "./names";

type Child = Node | string | number | null | undefined | false;

interface Attributes {
  class?: string | null;
  title?: string | null;
  id?: string | null;
  onclick?: (event: MouseEvent) => void;
  [name: string]: unknown;
}

/** Creates an element with attributes (`on…` are listeners; false and null are omitted) and children. */
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

/** Returns a foreign name: invisible characters are spelled out, and its text direction is isolated. */
export function name(text: string): HTMLElement {
  return h("bdi", null, sanitize(text));
}

/** Returns a sentence by heaptap that can contain foreign names, with `code` in backquotes. */
export function sentence(text: string): HTMLElement {
  return h("bdi", null, ...text.split(/(`[^`]+`)/).map((part, i) => (i % 2 === 1 ? h("code", null, sanitize(part.slice(1, -1))) : sanitize(part))));
}

/** Returns a button with a text or a symbol. */
export function button(label: string, attributes: Attributes): HTMLButtonElement {
  return h("button", { type: "button", ...attributes }, label);
}

const NS = "http://www.w3.org/2000/svg";

/** Creates an SVG element. */
export function svg(tag: string, attributes: Record<string, string | number>, ...children: Child[]): SVGElement {
  const element = document.createElementNS(NS, tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  put(element, ...children);
  return element;
}
