#!/usr/bin/env python3
"""Measures `heaptap hprof conv|info|strip` beside Android's hprof-conv, in one run.

    benches/hprof_conv.py [--megabytes N] [--rounds N] [--folder DIR]

The dump is generated, the same bytes each time, as ART writes them: segments of 4 KiB, heaps
marked, a VM-internal root before each object of the boot image, instances, strings and arrays.
Both converters' results are compared, plain and with -z. Prints the best of N rounds of each and
the peak of memory of its own (RssAnon); a copy of the file is the measure of the disk.
"""

import argparse
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

import programs
DEBIAN = "/usr/lib/android-sdk/platform-tools/hprof-conv"
STRING, HOLDER, OBJECTS = 0x1000, 0x1010, 0x1020


def record(tag, body):
    return struct.pack(">BII", tag, 0, len(body)) + body


def klass(ident, size, fields):
    body = struct.pack(">BIIIIIIIII", 0x20, ident, 0, 0, 0, 0, 0, 0, 0, size)
    body += struct.pack(">HHH", 0, 0, len(fields))
    return body + b"".join(struct.pack(">IB", *field) for field in fields)


def segments(rng, size):
    """Segments of about `size` bytes in all."""
    out, ident = [], 0x12C00000
    body, heap = b"", None
    written = 0
    while written < size:
        if len(body) >= 4096:
            out.append(record(0x1C, body))
            written += len(body) + 9
            body, heap = b"", None
        wanted = rng.choices("AZI", (80, 10, 10))[0]
        if wanted != heap:
            heap = wanted
            body += struct.pack(">BII", 0xFE, ord(heap), 0x400001 + "AZI".index(heap))
        if heap != "A":
            body += struct.pack(">BI", 0x8D, ident)
        kind = rng.random()
        if kind < 0.35:
            text = rng.randbytes(rng.randint(4, 60))
            body += struct.pack(">BIIIIIII", 0x21, ident, 0, STRING, 12, ident + 16, 7, len(text))
            body += struct.pack(">BIIIB", 0x23, ident + 16, 0, len(text), 8) + text
        elif kind < 0.85:
            body += struct.pack(">BIIII", 0x21, ident, 0, HOLDER, 24)
            body += struct.pack(">6I", *(ident + 8 * n for n in range(6)))
        elif kind < 0.95:
            length = rng.randint(0, 16)
            body += struct.pack(">BIIII", 0x22, ident, 0, length, OBJECTS)
            body += struct.pack(f">{length}I", *(ident + 8 * n for n in range(length)))
        else:
            data = rng.randbytes(rng.choice([64, 256, 16384]))
            body += struct.pack(">BIIIB", 0x23, ident, 0, len(data), 8) + data
        ident += 64
    out.append(record(0x1C, body))
    return b"".join(out)


def generate(path, size):
    names = ["app", "zygote", "image", "java.lang.String", "x.Holder", "java.lang.Object[]", "f"]
    rng = random.Random(7)
    # Ids come again every so often: no converter looks.
    piece = segments(rng, min(size, 64 << 20))
    with open(path, "wb") as out:
        out.write(b"JAVA PROFILE 1.0.3\0" + struct.pack(">IQ", 4, 1_700_000_000_000))
        for at, name in enumerate(names):
            out.write(record(0x01, struct.pack(">I", 0x400001 + at) + name.encode()))
        for serial, ident in enumerate((STRING, HOLDER, OBJECTS)):
            out.write(record(0x02, struct.pack(">IIII", serial + 1, ident, 0, 0x400004 + serial)))
        field = 0x400007
        classes = klass(STRING, 16, [(field, 2), (field, 10), (field, 10)])
        classes += klass(HOLDER, 32, [(field, 2)] * 6) + klass(OBJECTS, 0, [])
        out.write(record(0x1C, classes))
        while out.tell() < size:
            out.write(piece)
        out.write(record(0x2C, b""))
    return os.path.getsize(path)


def run(command):
    """Seconds and peak RssAnon in MB."""
    peak = 0
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def watch():
        nonlocal peak
        while child.poll() is None:
            try:
                with open(f"/proc/{child.pid}/status") as status:
                    for line in status:
                        if line.startswith("RssAnon:"):
                            peak = max(peak, int(line.split()[1]) / 1024)
            except OSError:
                return
            time.sleep(0.005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    code = child.wait()
    seconds = time.perf_counter() - start
    watcher.join()
    if code != 0:
        sys.exit(f"{' '.join(command)} ended with {code}")
    return seconds, peak


def same(one, other):
    return subprocess.run(["cmp", "-s", one, other]).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="where the dump and the results go")
    parser.add_argument("--heaptap", help="another program than the one that is installed")
    options = parser.parse_args()
    theirs = shutil.which("hprof-conv") or DEBIAN
    if not os.path.exists(theirs):
        sys.exit("hprof-conv is not installed")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        dump = os.path.join(folder, "dump.hprof")
        size = generate(dump, options.megabytes << 20)
        print(f"{size / 1e6:.0f} MB")
        ref, out = os.path.join(folder, "ref"), os.path.join(folder, "out")
        tool = [options.heaptap or programs.installed(), "hprof"]
        rows = [
            ("cp", ["cp", dump, out]),
            ("hprof-conv", [theirs, dump, ref]),
            ("heaptap hprof conv", tool + ["conv", "--force", dump, out]),
            ("hprof-conv -z", [theirs, "-z", dump, ref]),
            ("heaptap hprof conv -z", tool + ["conv", "-z", "--force", dump, out]),
            ("heaptap hprof strip", tool + ["strip", "--force", dump, out]),
            ("heaptap hprof info", tool + ["info", dump]),
        ]
        best = {}
        for _ in range(options.rounds):
            for name, command in rows:
                seconds, peak = run(command)
                before = best.get(name, (seconds, peak))
                best[name] = (min(seconds, before[0]), max(peak, before[1]))
                if " conv" in name and not same(ref, out):
                    sys.exit(f"{name} differs from hprof-conv")
        for name, (seconds, peak) in best.items():
            print(f"{name:24} {seconds:7.2f} s {size / seconds / 1e6:7.0f} MB/s {peak:7.1f} MB")


if __name__ == "__main__":
    main()
