// Expected content of the views, computed slowly: stack by stack, in plain lists.

/** Returns the name of a frame, and its kind. */
export const nameOf = (frame) => (typeof frame === "string" ? frame : frame.name);
const kindOf = (frame) => (typeof frame === "string" ? "plain" : (frame.kind ?? "plain"));
const libraryOf = (frame) => (typeof frame === "string" ? "" : (frame.lib ?? ""));

function matches(pattern, frame) {
  const library = pattern.startsWith("lib:");
  const text = library ? libraryOf(frame) : nameOf(frame);
  const body = library ? pattern.slice(4) : pattern;
  const form = /^\/(.*)\/(i?)$/s.exec(body);
  return form ? new RegExp(form[1], form[2]).test(text) : text.toLowerCase().includes(body.toLowerCase());
}

/** Applies filters to a stack (frames, outermost first). Returns null if it is hidden. */
export function filtered(stack, filters, { allFrames = false, foldRecursion = false } = {}) {
  let from = 0;
  const isShown = (frame) => allFrames || !["allocator", "runtime"].includes(kindOf(frame));
  const find = (pattern) => stack.findIndex((frame) => isShown(frame) && matches(pattern, frame));
  for (const { kind, pattern } of filters) {
    const first = find(pattern);
    if (kind === "HS" && first >= 0) return null;
    if (["SS", "SFF", "P"].includes(kind) && first < 0) return null;
    if (kind === "SFF") from = Math.max(from, first);
  }
  let shown = stack.slice(from);
  for (const { kind, pattern } of filters) {
    if (kind !== "CF") continue;
    const first = find(pattern);
    if (first >= 0) shown = stack.slice(from, Math.max(from, first + 1));
  }
  shown = shown.filter(
    (frame) =>
      isShown(frame) &&
      !filters.some(({ kind, pattern }) => kind === "HF" && matches(pattern, frame)),
  );
  if (foldRecursion) shown = shown.filter((frame, i) => i === 0 || nameOf(frame) !== nameOf(shown[i - 1]));
  return shown.map(nameOf);
}

/** Paths with values as a tree in the shape of browser.mjs's wholeTree. */
export function treeOf(paths) {
  const root = ["all", 0, 0, new Map()];
  for (const [path, after, before = 0] of paths) {
    let at = root;
    at[1] += after;
    at[2] += before;
    for (const name of path) {
      if (!at[3].has(name)) at[3].set(name, [name, 0, 0, new Map()]);
      at = at[3].get(name);
      at[1] += after;
      at[2] += before;
    }
  }
  const listed = ([name, after, before, children]) => [
    name,
    after,
    before,
    [...children.values()].filter((child) => child[1] > 0).map(listed).sort((a, b) => (a[0] < b[0] ? -1 : 1)),
  ];
  return listed(root);
}

/** Stacks of names: a small world with recursion, both languages, odd names. */
export function randomStacks(seed, count = 250) {
  let state = seed >>> 0;
  const random = (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 4294967296) * below);
  };
  const libraries = ["/system/lib64/liba.so", "/data/app/libgame.so", "/apex/libart.so", ""];
  const frames = Array.from({ length: 24 }, (_, i) => ({
    name: ["decode", "ns::f(byte[])", "operator()(int)", "a.b.C.m", "Map<K, V>::get"][i % 5] + i,
    lib: libraries[random(4)],
    kind: ["plain", "plain", "plain", "java", "runtime", "allocator"][random(6)],
  }));
  const stacks = [];
  for (let i = 0; i < count; i++) {
    const stack = [];
    for (let depth = 1 + random(8); depth > 0; depth--) {
      // Now and then the same again: recursion.
      stack.push(stack.length > 0 && random(5) === 0 ? stack[stack.length - 1] : frames[random(frames.length)]);
    }
    const held = random(30);
    stacks.push({ stack, values: { objects: held, space: held * 4096, alloc_objects: held + 5, alloc_space: (held + 5) * 4096 } });
  }
  return stacks;
}
