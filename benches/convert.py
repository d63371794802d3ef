#!/usr/bin/env python3
"""Measures `heaptap convert` beside `sha256sum` of the uncompressed trace plus `gzip -1` of the
uncompressed profiles, in one run.

    benches/convert.py [--only NAME] [--rounds N] [TRACE...]

Traces come from benches/generate_trace.rs; further ones (.zst too) may be named. Prints the
best of N rounds of each, wall time and CPU time, and the peak memory of heaptap.
"""

import argparse
import glob
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import time

import programs
# Name, callsites, dumps: about the size that the name says.
GENERATED = [
    ("1 MB", 4_000, 20),
    ("10 MB", 30_000, 20),
    ("100 MB", 200_000, 24),
    ("50 dumps", 200_000, 50),
    ("1 GB", 200_000, 260),
]


def run(command, **options):
    """Wall seconds, CPU seconds, peak KiB."""
    start = time.perf_counter()
    process = subprocess.Popen(command, **options)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if os.waitstatus_to_exitcode(status) not in (0, 6):
        sys.exit(f"{command[0]} failed")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def measure(name, trace, rounds, heaptap, folder):
    out = os.path.join(folder, "out")
    plain = os.path.join(folder, "plain")
    best = lambda runs: (min(r[0] for r in runs), min(r[1] for r in runs), max(r[2] for r in runs))
    ours, sums, zips = [], [], []
    for _ in range(rounds):
        shutil.rmtree(out, ignore_errors=True)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        ours.append(run([heaptap, "convert", "-q", trace, "-o", out], **quiet))
        profiles = sorted(glob.glob(os.path.join(out, "*.pb.gz")))
        if not sums:
            with open(plain, "wb") as target:
                for profile in profiles:
                    with gzip.open(profile) as source:
                        shutil.copyfileobj(source, target, 1 << 20)
        sums.append(run(["sha256sum", trace], **quiet))
        with open(plain + ".gz", "wb") as target:
            zips.append(run(["gzip", "-1", "-c", plain], stdout=target))
    size = sum(map(os.path.getsize, profiles))
    zipped = os.path.getsize(plain + ".gz")
    (wall, cpu, peak), (s, s_cpu, _), (z, z_cpu, _) = best(ours), best(sums), best(zips)
    print(
        f"{name:10} {os.path.getsize(trace) / 1e6:7.1f} MB {len(profiles):4} dumps  "
        f"heaptap {wall:6.2f} s (cpu {cpu:6.2f}, {peak / 1024:5.0f} MiB)  "
        f"sha256sum {s:5.2f} + gzip -1 {z:6.2f} s (cpu {s_cpu + z_cpu:6.2f})  "
        f"= {wall / (s + z):4.2f} x;  size {size / 1e6:.1f} of {zipped / 1e6:.1f} MB",
        flush=True,
    )
    os.remove(plain)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("traces", nargs="*")
    options.add_argument("--only")
    options.add_argument("--rounds", type=int, default=3)
    options = options.parse_args()
    heaptap, generate = programs.installed(), programs.example("generate_trace")
    with tempfile.TemporaryDirectory() as folder:
        for name, callsites, dumps in GENERATED:
            if options.only and options.only != name:
                continue
            trace = os.path.join(folder, "trace")
            with open(trace, "wb") as target:
                run([generate, str(callsites), str(dumps)], stdout=target)
            measure(name, trace, options.rounds, heaptap, folder)
            os.remove(trace)
        for path in options.traces:
            trace = path
            if path.endswith(".zst"):
                trace = os.path.join(folder, "given")
                subprocess.run(["zstd", "-dqf", path, "-o", trace], check=True)
            measure(os.path.basename(path).split(".")[0], trace, options.rounds, heaptap, folder)


if __name__ == "__main__":
    main()
