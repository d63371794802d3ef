// Requests to the server of the page. A page that is a file has the answers itself.

import type { Size } from "./answers";
import { thousands } from "../units";
import { Offline, type Kept } from "./offline";

export type * from "./answers";

/** Status of an answer if the server has opened another heap. */
const OTHER_HEAP = 409;

/** Answer of the server that is not the one asked for. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }

  /** Whether the same request has the same answer again. */
  get isFinal(): boolean {
    return this.status === 404 || this.status === 400;
  }

  /** Whether the page shows a heap that is no longer open. */
  get isOtherHeap(): boolean {
    return this.status === OTHER_HEAP;
  }
}

type Values = Record<string, string | number | boolean | null | undefined>;

/** Answers of a page that is a file; null if there is a server. */
let offline: Offline | null = null;
/** Heap that requests are about; undefined before it is known. */
let generation: number | undefined;
/** Is called if the server has opened another heap. */
let heapChanged = (): void => undefined;
/** Large answers about the heap, by request. */
const remembered = new Map<string, unknown>();

/** Takes the answers from a file instead of a server. */
export function answerFrom(file: Offline): void {
  offline = file;
  remembered.clear();
}

/** Sends requests about that heap only. */
export function askAbout(heap: number | undefined): void {
  if (heap !== generation) remembered.clear();
  generation = heap;
}

/** Sets what is called if the server has opened another heap. */
export function onHeapChange(changed: () => void): void {
  heapChanged = changed;
}

/** Returns what a page that is a file has; null if there is a server. */
export function kept(): Kept | null {
  return offline?.kept ?? null;
}

/** Returns whether there will be an answer. */
export function answers(operation: string, values: Values = {}): boolean {
  return offline?.has(operation, values) ?? true;
}

/** Returns the answer; null, false and undefined are not sent. */
export async function ask<Answer>(operation: string, values: Values = {}, signal?: AbortSignal): Promise<Answer> {
  if (offline) {
    const answer = offline.answer(operation, values);
    if (answer !== undefined) return answer as Answer;
    throw new ApiError(404, `This file does not have this part of the heap. It has ${thousands(offline.kept.objects)} objects. To see all objects, run: ${offline.kept.command}`);
  }
  const query = new URLSearchParams();
  if (operation !== "meta" && generation !== undefined) query.set("generation", String(generation));
  for (const [name, value] of Object.entries(values)) {
    if (value === null || value === undefined || value === false) continue;
    query.set(name, value === true ? "" : String(value));
  }
  const response = await fetch(`api/${operation}?${query}`, { headers: { "X-Heaptap": "1" }, signal: signal ?? null });
  const text = await response.text();
  if (response.ok) return JSON.parse(text) as Answer;
  if (response.status === OTHER_HEAP) heapChanged();
  throw new ApiError(response.status, reason(text) || response.statusText);
}

/** Returns the answer, and remembers it as long as the heap is shown. */
export async function askOnce<Answer>(operation: string, values: Values, signal: AbortSignal): Promise<Answer> {
  const key = `${operation}?${JSON.stringify(values)}`;
  if (!remembered.has(key)) remembered.set(key, await ask<Answer>(operation, values, signal));
  return remembered.get(key) as Answer;
}

/** Returns the reason of a failure: JSON of the explorer, or the text of the HTTP server. */
function reason(text: string): string {
  try {
    return sentenceCase((JSON.parse(text) as { error?: string }).error ?? "");
  } catch {
    return text;
  }
}

function sentenceCase(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Returns the text of an error. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Returns Java and native bytes together. */
export function total(size: Size | null): number {
  return size ? size.java_bytes + size.native_bytes : 0;
}
