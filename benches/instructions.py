#!/usr/bin/env python3
"""Compares the instructions of commands with benches/instructions.csv.

Fails if a command needs more than 3% more, as callgrind counts them. Unlike times, the counts do not depend on what else the machine does.

    benches/instructions.py            builds target/ci/heaptap as tests/run.sh does, and compares it
    benches/instructions.py --update   writes the counts of this tree

Needs valgrind. Ends with 77 if the counts were made by another compiler, which cannot be compared.
"""

import argparse
import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILT = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "ci")
BASELINE = os.path.join(ROOT, "benches", "instructions.csv")
HPROF = os.path.join(ROOT, "fixtures", "hprof", "leaklab-after.hprof.zst")
ANDROID = os.path.join(ROOT, "fixtures", "hprof", "android-a.hprof.gz")
MAPPING = os.path.join(ROOT, "fixtures", "mapping", "mapping-lab-optimized.txt")
SYMBOLS = os.path.join(ROOT, "fixtures", "symbolize")
MAX_RATIO = 1.03
# A small page holds the time, so about one of eight is compressed in fewer passes: 3% fewer instructions.
# The largest count of four is hardly ever one of those.
RUNS = {"report": 4}

# `trace` and `graph` are generated.
COMMANDS = {
    "convert": "convert -q --no-symbolize trace -o out",
    "query": "query --csv trace [SELECT sum(size) FROM heap_profile_allocation]",
    "top": "top trace",
    "top by library": "top --by library trace",
    "top as a tree": "top --tree trace",
    "leaks": "leaks trace",
    "diff": "diff trace@1 trace@last",
    "report": "report trace -o page.html",
    "convert a heap graph": "convert -q graph -o out",
    "top of a heap graph": "top graph",
    "top of an HPROF": f"top {HPROF}",
    "leaks of an HPROF": f"leaks {HPROF}",
    "report of an Android HPROF": f"report {ANDROID} -o page.html",
    "report of an HPROF": f"report {HPROF} -o page.html",
    "symbolize": f"symbolize {SYMBOLS}/multi.pftrace --symbols {SYMBOLS} -o named",
    "deobfuscate": f"convert -q --no-symbolize trace --mapping {MAPPING} -o out",
}


def generate(folder, name, *arguments):
    with open(os.path.join(folder, name.split("_")[-1]), "wb") as out:
        command = [os.path.join(BUILT, "examples", name), *arguments]
        subprocess.run(command, stdout=out, check=True)


def words(command):
    """A part in brackets is one word."""
    return [word[1:-1] if word[0] == "[" else word for word in re.findall(r"\[.*\]|\S+", command)]


def count(folder, command):
    """Instructions of a command in a directory of its own."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        for name in ("trace", "graph"):
            os.link(os.path.join(folder, name), os.path.join(own, name))
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
            + [os.path.join(BUILT, "heaptap"), *words(command)],
            cwd=own,
            env={"HOME": own, "PATH": os.environ["PATH"], "TZ": "UTC"},
            capture_output=True,
            text=True,
        )
    # 6: the input is incomplete. 12: inconclusive.
    found = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode not in (0, 6, 12) or not found:
        sys.exit(f"heaptap {command} ended with {run.returncode}:\n{run.stderr}")
    return int(found[1])


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--update", action="store_true", help="write the counts of this tree")
    update = options.parse_args().update
    if shutil.which("valgrind") is None:
        print("valgrind is missing", file=sys.stderr)
        sys.exit(77)
    # All at once: the tests build dependencies with the features of the whole workspace.
    cargo = ["cargo", "build", "--quiet", "--profile", "ci", "--locked", "--workspace", "--bins", "--examples"]
    subprocess.run(cargo, cwd=ROOT, check=True)
    compiler = subprocess.check_output(["rustc", "--version"], text=True).strip()
    before = {}
    if not update:
        with open(BASELINE, newline="") as file:
            before = dict(csv.reader(file))
        made_by = before.pop("compiler")
        if made_by != compiler:
            print(f"{BASELINE} was made by {made_by}, this is {compiler}", file=sys.stderr)
            sys.exit(77)
        if set(before) != set(COMMANDS):
            sys.exit("error: the commands have changed; run `benches/instructions.py --update`")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        generate(folder, "generate_trace", "4000", "4")
        generate(folder, "generate_heap_graph", "20000")
        runs = [name for name in COMMANDS for _ in range(RUNS.get(name, 1))]
        counts = {}
        for name, found in zip(runs, pool.map(lambda name: count(folder, COMMANDS[name]), runs)):
            counts[name] = max(found, counts.get(name, 0))
    if update:
        with open(BASELINE, "w", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["compiler", compiler])
            rows.writerows(counts.items())
        return
    worse = False
    for name, now in counts.items():
        ratio = now / int(before[name])
        worse |= ratio > MAX_RATIO
        mark = " worse" if ratio > MAX_RATIO else ""
        print(f"{name:24} {now / 1e6:9.1f} million, {(ratio - 1) * 100:+.1f}%{mark}")
    if worse:
        sys.exit("error: more than 3% worse; if intended, run `benches/instructions.py --update`")


if __name__ == "__main__":
    main()
