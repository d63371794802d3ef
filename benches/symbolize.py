#!/usr/bin/env python3
"""Compares heaptap's symbolizer with llvm-symbolizer: frames, time and memory, in one run.

    benches/symbolize.py [--addresses 10000] [--rounds N] [--llvm PROGRAM] FILE...

Each FILE is an ELF with symbols, such as /usr/lib/debug/.build-id/xx/….debug of a Debian -dbg
package. Of each, random addresses with a fixed seed are asked: one half anywhere in the
executable sections (padding too), the other in a function picked from the symbol table.
llvm-symbolizer reads them through a pipe, `symbolize_addresses` (benches/) too; each run is a
process of its own that knows nothing yet. Prints the agreement by frame on linkage name, file
and line, each kind of difference with an example, the best time of N rounds, and peak memory:
resident as the kernel counts it (mapped file pages are in it for both) and private (anonymous
pages, sampled in a run of its own).
"""

import argparse
import collections
import itertools
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time

import programs
SHT_SYMTAB, SHF_EXECINSTR, STT_FUNC = 2, 4, 2


class Elf:
    """Executable sections and function symbols of a little-endian ELF file."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read(64)
            self.wide = data[4] == 2
            if self.wide:
                (offset,) = struct.unpack_from("<Q", data, 40)
                size, count = struct.unpack_from("<HH", data, 58)
                row = "<IIQQQQIIQQ"
            else:
                (offset,) = struct.unpack_from("<I", data, 32)
                size, count = struct.unpack_from("<HH", data, 46)
                row = "<IIIIIIIIII"
            file.seek(offset)
            table = file.read(size * count)
            sections = [struct.unpack_from(row, table, i * size) for i in range(count)]
            self.code = [(s[3], s[3] + s[5]) for s in sections if s[2] & SHF_EXECINSTR and s[5]]
            self.functions = []
            for section in sections:
                if section[1] == SHT_SYMTAB:
                    file.seek(section[4])
                    self.read_symbols(file.read(section[5]))

    def read_symbols(self, table):
        row = struct.Struct("<IBBHQQ" if self.wide else "<IIIBBH")
        for symbol in row.iter_unpack(table[: len(table) // row.size * row.size]):
            if self.wide:
                _, info, _, section, value, size = symbol
            else:
                _, value, size, info, _, section = symbol
            if info & 15 == STT_FUNC and section and size:
                self.functions.append((value, value + size))

    def addresses(self, count, seed):
        """Where frames may be, in no order, each once."""
        picker = random.Random(seed)
        ends = list(itertools.accumulate(end - start for start, end in self.code))
        found = []
        for turn in range(count):
            if turn % 2 and self.functions:
                start, end = picker.choice(self.functions)
                found.append(picker.randrange(start, end))
                continue
            at = picker.randrange(ends[-1])
            index = next(i for i, end in enumerate(ends) if at < end)
            found.append(self.code[index][1] - ends[index] + at)
        return list(dict.fromkeys(found))


def run(command, questions, answers):
    """Wall seconds, CPU seconds, peak resident KiB; the answers go to a file."""
    with open(answers, "wb") as out:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out)
        with process.stdin:
            process.stdin.write(questions)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command[0]} failed")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def private_peak(command, questions):
    """Peak KiB of anonymous pages, looked at every two milliseconds; None where /proc has none."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    with process.stdin:
        process.stdin.write(questions)
    peak = None
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status") as status:
                for line in status:
                    if line.startswith("RssAnon:"):
                        peak = max(peak or 0, int(line.split()[1]))
        except OSError:
            pass
        time.sleep(0.002)
    return peak


def frames(path):
    """The answers: for each address its frames, innermost first, as (name, file, line)."""
    found = []
    with open(path) as lines:
        for line in lines:
            answer = json.loads(line)
            found.append([(s["FunctionName"], s["FileName"], s["Line"]) for s in answer["Symbol"]])
    return found


def differences(ours, theirs):
    """How the answers for one address differ: (kind, count of frames)."""
    if ours == theirs:
        return
    known = [[frame for frame in chain if frame != ("", "", 0)] for chain in (ours, theirs)]
    if not known[0]:
        yield "heaptap knows nothing", len(theirs)
    elif not known[1]:
        yield "only heaptap knows something", len(ours)
    elif len(ours) != len(theirs):
        shared = sum(a == b for a, b in zip(ours, theirs))
        kind = "more" if len(ours) > len(theirs) else "fewer"
        yield f"{kind} frames than llvm", max(len(ours), len(theirs)) - shared
    else:
        for at, (a, b) in enumerate(zip(ours, theirs)):
            if a != b:
                place = "outermost" if at + 1 == len(ours) else "inlined"
                what = [w for w, x, y in zip(("name", "file", "line"), a, b) if x != y]
                absent = [w for w, x, y in zip(("name", "file", "line"), a, b) if x != y and not x]
                yield f"{place} {'+'.join(what)}{' (we lack it)' if absent else ''}", 1


def compare(addresses, ours, theirs, examples):
    if len(ours) != len(addresses) or len(theirs) != len(addresses):
        sys.exit(f"{len(addresses)} asked, {len(ours)} and {len(theirs)} answered")
    kinds = collections.Counter()
    shown = collections.defaultdict(list)
    total = 0
    for address, a, b in zip(addresses, ours, theirs):
        total += max(len(a), len(b))
        for kind, count in differences(a, b):
            kinds[kind] += count
            shown[kind].append((address, a, b))
    wrong = sum(kinds.values())
    print(f"  {total - wrong} of {total} frames agree: {100 * (total - wrong) / total:.3f} %")
    for kind, count in kinds.most_common():
        print(f"  {count:6} {kind}")
        for address, a, b in shown[kind][:examples]:
            print(f"           {address:#x}")
            print(f"             heaptap {a}")
            print(f"             llvm    {b}")
    return (total - wrong) / total


def main():
    options = argparse.ArgumentParser()
    options.add_argument("files", nargs="+")
    options.add_argument("--addresses", type=int, default=10_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--examples", type=int, default=1)
    options.add_argument("--threads", type=int, default=0, help="0: all cores")
    options.add_argument("--llvm", default=shutil.which("llvm-symbolizer-19") or "llvm-symbolizer")
    options.add_argument("--ours", help="a built symbolize_addresses")
    options = options.parse_args()
    ours = options.ours or programs.example("symbolize_addresses")
    worst = 1.0
    with tempfile.TemporaryDirectory() as folder:
        for path in options.files:
            addresses = Elf(path).addresses(options.addresses, options.seed)
            questions = "".join(f"{address:#x}\n" for address in addresses).encode()
            llvm = [options.llvm, "--inlines", "--output-style=JSON", "--no-demangle"]
            llvm.append(f"--obj={path}")
            commands = [[ours, path, str(options.threads)], llvm]
            results = [os.path.join(folder, "heaptap"), os.path.join(folder, "llvm")]
            runs = [[], []]
            for _ in range(options.rounds):
                for at in range(2):
                    runs[at].append(run(commands[at], questions, results[at]))
            best = [[min(r[0] for r in x), min(r[1] for r in x), max(r[2] for r in x)] for x in runs]
            size = os.path.getsize(path) / 1e6
            print(f"{os.path.basename(path)}: {size:.1f} MB, {len(addresses)} addresses")
            for name, command, (wall, cpu, peak) in zip(("heaptap", "llvm"), commands, best):
                private = private_peak(command, questions)
                print(
                    f"  {name:8} {wall:6.2f} s (cpu {cpu:6.2f}), peak {peak / 1024:6.0f} MiB "
                    f"resident, {(private or 0) / 1024:6.0f} MiB private"
                )
            print(f"  {best[1][0] / best[0][0]:.1f} times as fast as llvm-symbolizer")
            agreement = compare(addresses, *map(frames, results), options.examples)
            worst = min(worst, agreement)
    if worst < 0.999:
        sys.exit("less than 99.9 % agree")


if __name__ == "__main__":
    main()
