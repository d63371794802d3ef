#!/usr/bin/env python3
"""Compares commands that read a recording with `convert` of it, in one run.

    benches/look.py [--rounds N] [--heaptap PROGRAM] [--against PROGRAM] [TRACE | HPROF]...

Without inputs, benches/generate_trace.rs makes two traces. The commands take turns; the best of N
rounds counts, and the peak memory is the largest. Of a trace, the last columns are multiples of
`convert`; of an HPROF, of `top`. --against measures another heaptap in the same rounds. Inputs can
be compressed by zstd.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

import programs

SUM = "SELECT sum(size) FROM heap_profile_allocation"
# IN is the input. The first command is the measure of the others.
NATIVE = {
    "`convert`": ["convert", "-q", "--no-symbolize", "IN", "-o", "out"],
    "`query`, a sum": ["query", "--csv", "IN", SUM],
    "`top`": ["top", "IN"],
    "`top --by library`": ["top", "--by", "library", "IN"],
    "`top --tree`": ["top", "--tree", "IN"],
    "`report`": ["report", "IN", "--force", "-o", "report.html"],
}
# These need two dumps.
SERIES = {
    "`leaks`": ["leaks", "IN"],
    "`diff` of first and last": ["diff", "IN@1", "IN@last"],
}
HPROF = {
    "`top`": ["top", "IN"],
    "`leaks`": ["leaks", "IN"],
    "`report`": ["report", "IN", "--force", "-o", "report.html"],
}
# Name, callsites, dumps.
GENERATED = [("one-dump", 1_000_000, 1), ("four-dumps", 1_500_000, 4)]


def run(command, folder):
    """Wall seconds, CPU seconds, peak KiB."""
    start = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    code = os.waitstatus_to_exitcode(status)
    # 6: the input is incomplete. 12: inconclusive.
    if code not in (0, 6, 12):
        sys.exit(f"{' '.join(command)} ended with {code}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def inputs(options, folder):
    """Names, paths and commands."""
    if not options.inputs:
        generate = programs.example("generate_trace")
        for name, callsites, dumps in GENERATED:
            path = os.path.join(folder, name)
            with open(path, "wb") as to:
                subprocess.run([generate, str(callsites), str(dumps)], stdout=to, check=True)
            yield name, path, NATIVE | (SERIES if dumps > 1 else {})
    for path in map(os.path.abspath, options.inputs):
        name = os.path.basename(path)
        if path.endswith(".zst"):
            name = name.removesuffix(".zst")
            plain = os.path.join(folder, name)
            subprocess.run(["zstd", "-qdf", path, "-o", plain], check=True)
            path = plain
        with open(path, "rb") as file:
            is_hprof = file.read(12) == b"JAVA PROFILE"
        commands = HPROF if is_hprof else NATIVE
        if not is_hprof and dumps_of(options.heaptap, path) > 1:
            commands = NATIVE | SERIES
        yield name, path, commands


def dumps_of(heaptap, path):
    counted = "SELECT count(DISTINCT ts) FROM heap_profile_allocation"
    command = [heaptap, "query", "--csv", path, counted]
    answer = subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL)
    return int(answer.split()[-1])


def best(runs):
    return min(r[0] for r in runs), min(r[1] for r in runs), max(r[2] for r in runs)


def measure(name, path, commands, options, folder):
    measured = {}
    heaptaps = [options.heaptap] + ([options.against] if options.against else [])
    for _ in range(options.rounds):
        for label, arguments in commands.items():
            for heaptap in heaptaps:
                command = [heaptap] + [word.replace("IN", path) for word in arguments]
                measured.setdefault((label, heaptap), []).append(run(command, folder))
                shutil.rmtree(os.path.join(folder, "out"), ignore_errors=True)
    print(f"\n{name}, {os.path.getsize(path) / 1e6:.0f} MB\n")
    first = next(iter(commands))
    other = "|before" * 2 if options.against else ""
    print(f"|Command|Wall|CPU|Peak|Wall, times {first}|Peak, times {first}{other}|")
    print("|-|-|-|-|-|-" + ("|-|-|" if options.against else "|"))
    unit = best(measured[first, options.heaptap])
    for label in commands:
        wall, cpu, peak = best(measured[label, options.heaptap])
        row = f"|{label}|{wall:.2f} s|{cpu:.2f} s|{peak / 1024:.0f} MiB"
        row += f"|{wall / unit[0]:.2f}|{peak / unit[2]:.2f}|"
        if options.against:
            wall, _, peak = best(measured[label, options.against])
            row += f"{wall:.2f} s|{peak / 1024:.0f} MiB|"
        print(row, flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--heaptap", type=os.path.abspath, help="program; built if not given")
    options.add_argument("--against", type=os.path.abspath, help="other program to measure")
    options.add_argument("inputs", nargs="*")
    options = options.parse_args()
    options.heaptap = options.heaptap or programs.installed()
    with tempfile.TemporaryDirectory() as folder:
        for name, path, commands in inputs(options, folder):
            measure(name, path, commands, options, folder)


if __name__ == "__main__":
    main()
