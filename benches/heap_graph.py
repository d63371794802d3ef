#!/usr/bin/env python3
"""Measures heaptap on heap graphs of many objects, beside sha256sum of the same traces.

    benches/heap_graph.py [--rounds N] [OBJECTS...]

Traces come from benches/generate_heap_graph.rs. Prints the best wall and CPU time of N rounds, in
which all take turns, the peak of the resident set, and of its anonymous part (Linux).

Held to: 2 million objects in 10 times sha256sum's time and a second.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import programs


def anonymous(pid):
    try:
        with open(f"/proc/{pid}/status") as status:
            for line in status:
                if line.startswith("RssAnon"):
                    return int(line.split()[1])
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0


def run(command):
    """Wall seconds, CPU seconds, peak KiB, peak anonymous KiB."""
    peaks = [0]
    done = threading.Event()
    start = time.perf_counter()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, **quiet)

    def watch():
        while not done.wait(0.004):
            peaks[0] = max(peaks[0], anonymous(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    done.set()
    watcher.join()
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 6, 7):
        sys.exit(f"{command} failed with {code}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, peaks[0]


def measure(commands, rounds):
    """Runs all in turn, so that what else the machine does hits all alike."""
    runs = {name: [] for name, _ in commands}
    for _ in range(rounds):
        for name, command in commands:
            if "-o" in command:
                shutil.rmtree(command[command.index("-o") + 1], ignore_errors=True)
            runs[name].append(run(command))
    for name, _ in commands:
        wall, cpu = min(r[0] for r in runs[name]), min(r[1] for r in runs[name])
        peak, anon = max(r[2] for r in runs[name]), max(r[3] for r in runs[name])
        print(
            f"  {name:29} {wall:6.2f} s (cpu {cpu:6.2f}), peak {peak / 1024:6.0f} MiB, "
            f"anonymous {anon / 1024:6.0f} MiB",
            flush=True,
        )


def main():
    options = argparse.ArgumentParser()
    options.add_argument("objects", nargs="*", type=int, default=[2_000_000])
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--heaptap", help="another program than the one that is installed")
    options = options.parse_args()
    generator = programs.example("generate_heap_graph")
    heaptap = options.heaptap or programs.installed()
    with tempfile.TemporaryDirectory() as folder:
        for objects in options.objects:
            trace = os.path.join(folder, f"{objects}.pftrace")
            with open(trace, "wb") as out:
                subprocess.run([generator, str(objects)], stdout=out, check=True)
            print(f"{objects} objects, {os.path.getsize(trace) / 1e6:.0f} MB")
            convert = [heaptap, "convert", "-q", trace, "-o", os.path.join(folder, "out")]
            commands = [
                ("sha256sum", ["sha256sum", trace]),
                ("heaptap convert", convert),
                ("heaptap convert --dominators", convert + ["--dominators"]),
                ("heaptap top", [heaptap, "top", trace]),
            ]
            measure(commands, options.rounds)


if __name__ == "__main__":
    main()
