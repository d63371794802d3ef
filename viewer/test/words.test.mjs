// Words that the style guide rejects, in the texts and comments of the viewer.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

const REJECTED = /\b(anew|beside|nobody|whoever|is told|is said|can't tell|let go|the phone|within noise|colour\w*)\b/i;

test("33: sources do not contain rejected words", () => {
  const folder = new URL("../src/", import.meta.url);
  const files = readdirSync(folder, { recursive: true }).filter((name) => /\.(ts|css)$/.test(name));
  assert.ok(files.length > 50);
  const found = files.flatMap((name) =>
    readFileSync(new URL(name, folder), "utf8")
      .split("\n")
      .flatMap((line, at) => (REJECTED.test(line) ? [`${name}:${at + 1}: ${line.trim()}`] : [])),
  );
  assert.deepEqual(found, []);
});
