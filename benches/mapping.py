#!/usr/bin/env python3
"""Measures loading a mapping file of R8 beside two `sha256sum` of it, in one run.

    benches/mapping.py [--megabytes N] [--rounds N] [MAPPING...]

The file is generated, of the same bytes each time: classes with fields, methods with line
ranges and inlined calls, and R8's metadata, about 90 bytes a line as real ones have. Further
files may be named. Prints the best of N rounds of each, what heaptap holds of the file in
memory of its own, and its peak with the pages of the file that are mapped.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time

import programs
WORDS = (
    "account activity adapter async backend binding bitmap button cache channel client cluster "
    "codec compose config context cursor dialog domain editor engine entity event factory field "
    "filter fragment gateway gesture graph handler history icon image intent item job key layer "
    "layout list listener loader local locale log manager map message metric model module network "
    "node observer option page panel parser path player policy pool presenter profile provider "
    "query queue reader record remote render report request resolver resource result router scene "
    "screen search section service session setting shader shape signal source state store stream "
    "style sync table task theme thread tile timer token tool track transport tree update user "
    "value vector video view viewer visitor widget window worker writer"
).split()
TYPES = ["int", "long", "boolean", "float", "java.lang.String", "java.util.List", "byte[]"]


def short(number):
    """a, b, …, z, aa, ab, …"""
    name = ""
    while True:
        name = chr(97 + number % 26) + name
        number = number // 26 - 1
        if number < 0:
            return name


def generate(path, size):
    rng = random.Random(11)
    camel = lambda n: "".join(rng.choice(WORDS).capitalize() for _ in range(n))
    lower = lambda n: rng.choice(WORDS) + camel(n - 1)
    names = []
    with open(path, "w", newline="\n") as out:
        out.write("# compiler: R8\n# compiler_version: 8.3.36\n# min_api: 24\n")
        out.write('# {"id":"com.android.tools.r8.mapping","version":"2.2"}\n')
        out.write("# pg_map_id: 48ffd94\n")
        written = 0
        count = 0
        while written < size:
            simple = camel(rng.randint(1, 3))
            name = f"com.example.{rng.choice(WORDS)}.{rng.choice(WORDS)}.{simple}"
            if rng.random() < 0.3:
                name += f"${camel(1)}"
            lines = [f"{name} -> {short(count % 700)}.{short(count // 700)}:"]
            lines.append(f'# {{"id":"sourceFile","fileName":"{simple}.kt"}}')
            for field in range(rng.randint(0, 5)):
                kind = rng.choice(names) if names and rng.random() < 0.5 else rng.choice(TYPES)
                lines.append(f"    {kind} {lower(2)} -> {short(field)}")
            line = 1
            for method in range(rng.randint(1, 9)):
                args = ",".join(
                    rng.choice(names) if names and rng.random() < 0.3 else rng.choice(TYPES)
                    for _ in range(rng.randint(0, 3))
                )
                source = rng.randint(10, 900)
                signature = f"void {lower(2)}({args})"
                for _ in range(rng.randint(1, 3)):
                    end = line + rng.randint(0, 8)
                    if names and rng.random() < 0.3:
                        at = rng.randint(5, 400)
                        inner = f"{rng.choice(names)}.{lower(2)}"
                        lines.append(f"    {line}:{end}:int {inner}():{at}:{at} -> {short(method)}")
                    lines.append(f"    {line}:{end}:{signature}:{source}:{source} -> {short(method)}")
                    line = end + 1
                    source += 1
                if rng.random() < 0.1:
                    lines.append('      # {"id":"com.android.tools.r8.synthesized"}')
            if len(names) < 5000:
                names.append(name)
            text = "\n".join(lines) + "\n"
            out.write(text)
            written += len(text)
            count += 1


def run(command):
    """Wall seconds, peak KiB, output."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    output = process.stdout.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"{command[0]} failed")
    return wall, usage.ru_maxrss, output


def measure(path, rounds, load):
    sums, loads = [], []
    for _ in range(rounds):
        sums.append(run(["sha256sum", path])[0])
        loads.append(run([load, path]))
    _, _, lookups = run([load, path, "10000"])
    both = 2 * min(sums)
    wall, peak, output = min(loads)
    words = output.split()
    facts = dict(zip(words[::2], words[1::2]))
    print(
        f"{os.path.getsize(path) / 1e6:7.1f} MB, {facts['classes']} classes: loaded in {wall:.3f} s "
        f"(two sha256sum {both:.3f} s, {wall / both:.2f} x); "
        f"own memory {int(facts['own_kib']) / 1024:.1f} MiB, "
        f"peak {peak / 1024:.0f} MiB with the file's pages; {lookups.splitlines()[-1]}",
        flush=True,
    )


def main():
    options = argparse.ArgumentParser()
    options.add_argument("mappings", nargs="*")
    options.add_argument("--megabytes", type=int, default=100)
    options.add_argument("--rounds", type=int, default=5)
    options = options.parse_args()
    load = programs.example("load_mapping")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mapping.txt")
        generate(path, options.megabytes * 1_000_000)
        measure(path, options.rounds, load)
    for path in options.mappings:
        measure(path, options.rounds, load)


if __name__ == "__main__":
    main()
