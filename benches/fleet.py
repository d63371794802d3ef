#!/usr/bin/env python3
"""Measures a store of generated recordings, and compares the answers of both engines with those
that the generator counted: benches/fleet.py [COUNT] [--keep DIR]. Needs the packages duckdb and
pyspark, and Java; run it with the Python that has them. docs/fleet.md has the figures."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
GENERATOR = ROOT / "target/release/examples/generate_fleet"


def stored(store):
    """Files and bytes by table, without the files that have no rows."""
    sizes = {}
    for path in store.glob("v1/*/**/*.parquet"):
        if path.name != "empty.parquet":
            table = path.relative_to(store).parts[1]
            files, size = sizes.get(table, (0, 0))
            sizes[table] = (files + 1, size + path.stat().st_size)
    return sizes


def print_stored(what, sizes, count):
    files = sum(files for files, _ in sizes.values())
    size = sum(size for _, size in sizes.values())
    parts = ", ".join(f"{table} {size / count:.0f}" for table, (_, size) in sorted(sizes.items()))
    print(f"{what}: {size / count:.0f} bytes a recording in {files} files ({parts})", flush=True)


def run(command):
    """Returns the output, the seconds, and the resources that the command used."""
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return output, time.monotonic() - began, usage


def cpu_ms(usage, count):
    return (usage.ru_utime + usage.ru_stime) / count * 1000


def ask(store, known, engine):
    command = [sys.executable, ROOT / "fleet/ask.py", store, "all", "--engine", engine, "--json"]
    command += ["--app", "com.example.feed", "--from", "103", "--to", "104"]
    output, seconds, _ = run(command)
    told = json.loads(output)
    wrong = [question for question, rows in known.items() if told[question]["rows"] != rows]
    times = ", ".join(f"{question} {told[question]['seconds']:.2f} s" for question in known)
    print(f"{engine}: {times}; start {told['start_s']:.1f} s, all {seconds:.1f} s")
    print(f"{engine}: {'WRONG ' + ', '.join(wrong) if wrong else 'all answers are right'}", flush=True)
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=10_000)
    parser.add_argument("--keep", type=pathlib.Path, help="directory of the store")
    parser.add_argument("--engine", action="append", choices=["duckdb", "spark"])
    parser.add_argument("--small-files", action="store_true", help="ask before compaction, too")
    args = parser.parse_args()
    build = ["cargo", "build", "-q", "--release", "-p", "heaptap-archive"]
    if not GENERATOR.is_file():
        run([*build, "--example", "generate_fleet"])
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or pathlib.Path(temporary)
        store, answers = folder / "store", folder / "answers.json"
        generate = [GENERATOR, store, str(args.count), answers]
        if not answers.is_file():
            _, seconds, usage = run(generate)
            print(f"written in {seconds:.0f} s, {cpu_ms(usage, args.count):.1f} ms of CPU a recording")
            print_stored("small files", stored(store), args.count)
        known = json.loads(answers.read_text())
        engines = args.engine or ["duckdb", "spark"]
        is_right = True
        if args.small_files:
            is_right = all([ask(store, known, engine) for engine in engines])
        _, seconds, usage = run([GENERATOR, store, "0", folder / "none.json", "--compact"])
        print(f"compacted in {seconds:.0f} s, {cpu_ms(usage, args.count):.1f} ms of CPU a recording,")
        print(f"{usage.ru_maxrss / 1024:.0f} MiB at most")
        print_stored("compacted", stored(store), args.count)
        is_right &= all([ask(store, known, engine) for engine in engines])
    sys.exit(not is_right)


if __name__ == "__main__":
    main()
