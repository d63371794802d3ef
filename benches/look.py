#!/usr/bin/env python3
"""Measures what people wait for when they look at a large recording: `top`, `query` and `report`.

    benches/look.py [--rounds N] [--heaptap PROGRAM --generate PROGRAM]

Traces come from benches/generate_trace.rs. Prints the best of N
rounds of each: wall time, CPU time, and the peak memory. The programs are built if none are
named.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

import programs
LAST = "SELECT max(ts) FROM heap_profile_allocation"
TOTALS = "SELECT ts, sum(size), sum(count) FROM heap_profile_allocation GROUP BY ts"
# The statement of Perfetto's documentation: the largest callsites with their frames.
LARGEST = """
SELECT c.id, f.name, m.name, sum(a.size) AS held
FROM heap_profile_allocation a
JOIN stack_profile_callsite c ON a.callsite_id = c.id
JOIN stack_profile_frame f ON c.frame_id = f.id
JOIN stack_profile_mapping m ON f.mapping = m.id
GROUP BY c.id ORDER BY held DESC LIMIT 20
"""
# Name, callsites, dumps.
TRACES = [("100 MB", 200_000, 24), ("200,000 callsites", 200_000, 1)]
COMMANDS = {
    "100 MB": [
        ("`top`", ["top"]),
        ("`top --by callsite --json`", ["top", "--by", "callsite", "--json"]),
        ("`top --tree`", ["top", "--tree"]),
        ("`query`: one figure", ["query", "--csv", None, LAST]),
        ("`query`: totals of each dump", ["query", "--csv", None, TOTALS]),
        ("`query`: the largest callsites", ["query", "--csv", None, LARGEST]),
        ("`report`, all dumps", ["report", "--force", "-o", "report.html"]),
    ],
    "200,000 callsites": [
        ("`top`", ["top"]),
        ("`report`", ["report", "--force", "-o", "report.html"]),
    ],
}


def run(command, folder, output=subprocess.DEVNULL):
    """Wall seconds, CPU seconds, peak KiB."""
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 6):
        sys.exit(f"{' '.join(command)} ended with {code}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def with_input(arguments, trace):
    """The input stands where None does, else behind the command's name."""
    if None in arguments:
        return [trace if argument is None else argument for argument in arguments]
    return [arguments[0], trace, *arguments[1:]]


def profiles_size(heaptap, trace, folder):
    """Bytes of the gzipped pprofs, which a report may be 1.5 times."""
    out = os.path.join(folder, "pprofs")
    run([heaptap, "convert", "-q", "--no-symbolize", trace, "-o", out], folder)
    names = [name for name in os.listdir(out) if name.endswith(".pb.gz")]
    return sum(os.path.getsize(os.path.join(out, name)) for name in names)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--heaptap")
    options.add_argument("--generate")
    options = options.parse_args()
    heaptap = options.heaptap or programs.installed()
    generate = options.generate or programs.example("generate_trace")
    print("| input | command | wall | CPU | peak |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, callsites, dumps in TRACES:
            trace = os.path.join(folder, "trace")
            with open(trace, "wb") as to:
                run([generate, str(callsites), str(dumps)], folder, to)
            for label, arguments in COMMANDS[name]:
                command = [heaptap, *with_input(arguments, trace)]
                rounds = [run(command, folder) for _ in range(options.rounds)]
                wall, cpu = min(r[0] for r in rounds), min(r[1] for r in rounds)
                peak = max(r[2] for r in rounds)
                print(
                    f"| {name}, {dumps} dumps | {label} "
                    f"| {wall:.2f} s | {cpu:.2f} s | {peak / 1024:.0f} MiB |",
                    flush=True,
                )
            page = os.path.getsize(os.path.join(folder, "report.html"))
            pprofs = profiles_size(heaptap, trace, folder)
            print(
                f"{name}: report.html {page / 1e6:.1f} MB, its pprofs in gzip {pprofs / 1e6:.1f} MB",
                file=sys.stderr,
            )
            for left in os.listdir(os.path.join(folder, "pprofs")):
                os.remove(os.path.join(folder, "pprofs", left))
            os.rmdir(os.path.join(folder, "pprofs"))


if __name__ == "__main__":
    main()
