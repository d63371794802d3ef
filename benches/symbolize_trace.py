#!/usr/bin/env python3
"""Measures `heaptap symbolize` on a trace with many frames in many libraries, cold and warm.

    benches/symbolize_trace.py [--libraries 200] [--frames 50000] [--rounds N] LIBRARY...

The libraries of the trace are copies of LIBRARY (ELF files with symbols, taken in turn), each
with a build ID of its own patched in; the frames lie at random addresses of their functions. A
cold run begins with an empty cache of heaptap's, a warm one with what the cold one left. Prints
wall and CPU times, how much of all cores a cold run used, what share of its time a warm one
takes, and how many frames were named. Files stay in the system's cache for all runs.
"""

import argparse
import json
import multiprocessing
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

import programs
from symbolize import Elf, run

SEQUENCE = 2
START_NS = 1_000_000_000_000
PT_LOAD, PF_X, SHT_NOTE = 1, 1, 7


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, value):
    """A field of a message: a number, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def packet(*fields, flags=0):
    """A packet of the producer; 1: its interned data begins anew."""
    body = b"".join(fields) + field(8, START_NS) + field(3, 9999) + field(10, SEQUENCE)
    if flags:
        body += field(13, flags)
    return field(1, body)


def build_id_at(data):
    """Offset and size of the GNU build ID in the file's bytes."""
    name = struct.pack("<I", 3) + b"GNU\0"
    at = data.find(name)
    if at < 4:
        sys.exit("a library without a build ID")
    return at + len(name), struct.unpack_from("<I", data, at - 4)[0]


def code_address(data):
    """Where the linker put the first executable segment."""
    wide = data[4] == 2
    (offset,) = struct.unpack_from("<Q" if wide else "<I", data, 32 if wide else 28)
    size, count = struct.unpack_from("<HH", data, 54 if wide else 42)
    for at in range(offset, offset + size * count, size):
        if wide:
            kind, flags, _, address = struct.unpack_from("<IIQQ", data, at)
        else:
            kind, _, address = struct.unpack_from("<III", data, at)
            (flags,) = struct.unpack_from("<I", data, at + 24)
        if kind == PT_LOAD and flags & PF_X:
            return address
    sys.exit("a library without code")


def write_libraries(paths, count, folder, picker):
    """Copies of the libraries under new build IDs: (build ID, functions, address of the code)."""
    libraries = []
    for number in range(count):
        path = paths[number % len(paths)]
        with open(path, "rb") as source:
            data = bytearray(source.read())
        at, size = build_id_at(data)
        build_id = picker.randbytes(size)
        data[at : at + size] = build_id
        # Names say nothing: they are found by their build IDs.
        with open(os.path.join(folder, f"symbols{number}.so"), "wb") as target:
            target.write(data)
        functions = Elf(path).functions
        if not functions:
            sys.exit(f"{path} has no functions in a symbol table")
        libraries.append((build_id, functions, code_address(data)))
    return libraries


def write_trace(libraries, frames, path, picker):
    """A dump of callstacks with so many frames in all, each of them once."""
    interned = [field(kind, field(1, 0) + field(2, b"")) for kind in (16, 17, 5)]
    for number, (build_id, _, code) in enumerate(libraries, 1):
        name = f"libbench{number}.so".encode()
        interned.append(field(16, field(1, number) + field(2, build_id)))
        interned.append(field(17, field(1, number) + field(2, name)))
        start = 0x7000_0000_0000 + number * 0x1000_0000
        page = code & ~0xFFF
        mapping = field(1, number) + field(2, number) + field(4, start)
        mapping += field(5, start + 0x800_0000) + field(7, number) + field(8, page)
        interned.append(field(19, mapping))
    for number in range(1, frames + 1):
        library = (number - 1) % len(libraries)
        begin, end = picker.choice(libraries[library][1])
        frame = field(1, number) + field(2, 0) + field(3, library + 1)
        interned.append(field(6, frame + field(4, picker.randrange(begin, end))))
    samples = []
    numbers = list(range(1, frames + 1))
    picker.shuffle(numbers)
    depth = 25
    for number, at in enumerate(range(0, frames, depth), 1):
        stack = b"".join(field(2, frame) for frame in numbers[at : at + depth])
        interned.append(field(7, field(1, number) + stack))
        sample = field(1, number) + field(2, 4096) + field(5, 1)
        samples.append(field(2, sample))
    dump = field(1, 4242) + field(3, 1) + field(9, START_NS) + field(11, b"libc.malloc")
    dump += field(12, 4096) + field(13, 4096) + b"".join(samples)
    clocks = [(6, START_NS), (4, START_NS), (1, 1_800_000_000_000_000_000)]
    clocks = b"".join(field(1, field(1, clock) + field(2, time)) for clock, time in clocks)
    with open(path, "wb") as trace:
        trace.write(field(1, field(6, clocks) + field(3, 9999) + field(10, 1)))
        trace.write(packet(field(12, b"".join(interned)), flags=1))
        trace.write(packet(field(37, field(5, dump) + field(7, 0))))
        trace.write(packet(field(37, field(7, 1))))


def generate(options, symbols, trace):
    picker = random.Random(options.seed)
    libraries = write_libraries(options.paths, options.libraries, symbols, picker)
    write_trace(libraries, options.frames, trace, picker)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("paths", nargs="+", metavar="LIBRARY")
    options.add_argument("--libraries", type=int, default=200)
    options.add_argument("--frames", type=int, default=50_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--heaptap", help="a built heaptap")
    options.add_argument("--folder", help="where to keep trace and libraries [default: nowhere]")
    options = options.parse_args()
    heaptap = options.heaptap or programs.installed()
    with tempfile.TemporaryDirectory() as folder:
        folder = options.folder or folder
        symbols = os.path.join(folder, "symbols")
        os.makedirs(symbols, exist_ok=True)
        trace = os.path.join(folder, "trace")
        output = os.path.join(folder, "out")
        cache = os.path.join(folder, "cache")
        # Elsewhere: what this process holds counts for the peak of those that it starts.
        maker = multiprocessing.Process(target=generate, args=(options, symbols, trace))
        maker.start()
        maker.join()
        if maker.exitcode:
            sys.exit("nothing to measure")
        os.environ["HEAPTAP_CACHE_DIR"] = cache
        command = [heaptap, "symbolize", "-q", trace, "-o", output]
        command += ["--symbols", symbols, "--no-discover"]
        runs = {"cold": [], "warm": []}
        for _ in range(options.rounds):
            shutil.rmtree(cache, ignore_errors=True)
            for kind in runs:
                runs[kind].append(run(command, b"", os.devnull))
        best = {kind: [min(r[i] for r in all) for i in range(3)] for kind, all in runs.items()}
        cores = len(os.sched_getaffinity(0))
        print(
            f"{options.frames} frames in {options.libraries} libraries "
            f"({os.path.getsize(trace) / 1e6:.1f} MB of trace, {cores} cores)"
        )
        for kind, (wall, cpu, peak) in best.items():
            print(f"  {kind}: {wall:6.2f} s (cpu {cpu:6.2f}), peak {peak / 1024:5.0f} MiB")
        wall, cpu, _ = best["cold"]
        print(f"  cold: {100 * cpu / wall / cores:.0f} % of all cores")
        print(f"  warm: {100 * best['warm'][0] / wall:.1f} % of the cold run's time")
        report = subprocess.run(command + ["--json"], capture_output=True, check=True)
        found = json.loads(report.stdout)["symbolization"]
        known, unknown = found["frames_named"], found["frames_unnamed"]
        print(f"  {known} of {known + unknown} frames named, {found['frames_with_lines']} with lines")


if __name__ == "__main__":
    main()
