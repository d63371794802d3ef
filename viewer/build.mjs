// Builds the scripts of the report and of the explorer and their style, and writes dist/MANIFEST with the
// SHA-256 of these and of every source, which tests/viewer.rs checks. Run by `npm run build`.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const TARGET = ["chrome90", "firefox113", "safari16.4"];

async function bundle(entry, outfile, extra) {
  const result = await build({
    absWorkingDir: here,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    charset: "ascii",
    legalComments: "none",
    target: TARGET,
    ...extra,
  });
  let text = result.outputFiles[0].text;
  if (!text.endsWith("\n")) text += "\n";
  for (const bad of ["\r", "</script", "</style", "<!--"]) {
    if (text.toLowerCase().includes(bad)) throw new Error(`${outfile} contains ${JSON.stringify(bad)}`);
  }
  mkdirSync(join(here, "dist"), { recursive: true });
  writeFileSync(join(here, outfile), text);
}

await bundle("src/main.ts", "dist/report.js", { format: "iife" });
await bundle("src/report.css", "dist/report.css", {});
await bundle("src/explore/main.ts", "dist/explore.js", { format: "iife" });

const sha256 = (path) => createHash("sha256").update(readFileSync(join(here, path))).digest("hex");
const isSource = (name) => /\.(ts|css)$/.test(name);
const sources = readdirSync(join(here, "src"), { recursive: true })
  .map((name) => `src/${name.replaceAll("\\", "/")}`)
  .filter(isSource)
  .sort();
const built = ["explore.js", "report.css", "report.js"].map((name) => `dist/${name}`);
const files = ["build.mjs", "package-lock.json", "package.json", "tsconfig.json", ...sources, ...built];
writeFileSync(join(here, "dist/MANIFEST"), files.map((path) => `${sha256(path)}  ${path}\n`).join(""));
