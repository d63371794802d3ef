#!/usr/bin/env python3
"""Measures reading a large HPROF beside hprof-slurp, in one run.

    benches/hprof.py [--megabytes N] [--rounds N] [--slurp PROGRAM] [--keep FILE] [DUMP]

Without DUMP, benches/BigHeap.java fills a heap and dumps it (1200 MB make a file of 1.6 GB; needs a
JDK and the room; --keep keeps it). Programs take turns, so that what else the machine does
meets all of them; the best of N rounds of each counts. Where hprof-slurp is not installed (cargo
install hprof-slurp), only heaptap is measured.

Held to: a histogram in 0.6 of hprof-slurp's time and no more memory than it; with dominators and
retained sizes 8 times its time, and 0.7 of the file in memory of heaptap's own.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import programs


def generate(path, megabytes, folder):
    source = os.path.join(programs.ROOT, "benches", "BigHeap.java")
    subprocess.run(["javac", "-d", folder, source], check=True)
    heap = f"-Xmx{megabytes * 3 + 512}m"
    subprocess.run(["java", heap, "-cp", folder, "BigHeap", str(megabytes), path], check=True)


def peak_of_child(arguments):
    """Seconds and peak memory of a program that prints elsewhere."""
    started = time.monotonic()
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{arguments[0]} failed with {process.returncode}")
    return time.monotonic() - started, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--megabytes", type=int, default=1200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slurp", default=shutil.which("hprof-slurp"))
    parser.add_argument("--keep", metavar="FILE")
    parser.add_argument("dump", nargs="?")
    args = parser.parse_args()
    reader = programs.example("read_hprof")
    with tempfile.TemporaryDirectory() as folder:
        dump = args.dump
        if dump is None:
            dump = args.keep or os.path.join(folder, "big.hprof")
            generate(dump, args.megabytes, folder)
        size = os.path.getsize(dump)
        with open(dump, "rb") as file:  # into the page cache
            while file.read(1 << 24):
                pass
        best = {}
        for _ in range(args.rounds):
            if args.slurp:
                seconds, peak = peak_of_child([args.slurp, dump])
                best.setdefault("hprof-slurp", []).append((seconds, peak, None, None))
            for what in ("histogram", "graph", "analysis"):
                answer = subprocess.run(
                    [reader, what, dump], check=True, stdout=subprocess.PIPE, text=True
                )
                it = json.loads(answer.stdout)
                row = (it["seconds"], it["peak"], it["anonymous"], it["objects"])
                best.setdefault(what, []).append(row)
    slurp = min(row[0] for row in best["hprof-slurp"]) if args.slurp else None
    print(f"{size / 1e6:.0f} MB, {best['graph'][0][3]:,} objects, best of {args.rounds}")
    for name, rows in best.items():
        seconds = min(row[0] for row in rows)
        line = f"{name:12} {seconds:7.2f} s"
        line += f"  {seconds / slurp:5.2f} x slurp" if slurp else ""
        line += f"  peak {max(row[1] for row in rows) / 1e6:7.0f} MB"
        if rows[0][2] is not None:
            own = max(row[2] for row in rows)
            line += f"  of its own {own / 1e6:6.0f} MB = {own / size:.2f} x file"
        print(line)


if __name__ == "__main__":
    main()
