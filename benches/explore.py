#!/usr/bin/env python3
"""Measures `heaptap explore`: when the page, the class table and all indices are there, the peak memory,
and how long each query takes.

    benches/explore.py [--samples N] [--heaptap PROGRAM] [--hub N] [DUMP]

Without a dump, BigHeap.java makes one of 2 GB, in which N objects refer to one object; that needs a JDK.
Queries are asked about random objects, and about the object with the most referrers. Needs Linux.
"""

import argparse
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

import programs

# Name, request about an object.
OF_OBJECT = {
    "object": "object?id={id}",
    "fields": "fields?id={id}&limit=100",
    "referrers": "referrers?id={id}&limit=100",
    "path": "path?id={id}",
    "dominated": "objects?dominated={id}&limit=100",
    "treemap": "treemap?id={id}",
}
OF_HEAP = {
    "classes": "classes?limit=200",
    "all objects": "objects?offset={offset}&limit=200",
    "all, by shallow size": "objects?sort=shallow&offset={offset}&limit=200",
    "a class, by shallow size": "objects?class={class}&sort=shallow&limit=200",
    "strings, a text": "search?in=strings&text=heaptap",
    "treemap": "treemap?",
}


class Explorer:
    """A running `heaptap explore`."""

    def __init__(self, program, dump):
        self.began = time.perf_counter()
        command = [program, "explore", dump, "--print-url", "--idle", "10m"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.url = self.process.stdout.readline().strip()

    def age(self):
        return time.perf_counter() - self.began

    def get(self, path):
        request = urllib.request.Request(self.url + path, headers={"X-Heaptap": "1"})
        with urllib.request.urlopen(request) as answer:
            return answer.read()

    def ask(self, request):
        return json.loads(self.get("api/" + request))

    def timed(self, request):
        """Milliseconds until the answer is there."""
        began = time.perf_counter()
        self.get("api/" + request)
        return (time.perf_counter() - began) * 1000

    def peak_mib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status).group(1)) / 1024

    def end(self):
        self.process.terminate()
        self.process.wait()


def made(folder, hub):
    """A dump by BigHeap.java."""
    if not shutil.which("javac"):
        sys.exit("there is no javac: pass a dump")
    dump = pathlib.Path(folder) / "big.hprof"
    source = pathlib.Path(__file__).parent / "BigHeap.java"
    subprocess.run(["javac", "-d", folder, source], check=True)
    subprocess.run(
        ["java", "-Xmx6g", "-cp", folder, "BigHeap", "2000", str(dump), str(hub)], check=True
    )
    return dump


def quantiles(times):
    times = sorted(times)
    at = lambda share: times[min(len(times) - 1, int(share * len(times)))]
    return f"{at(0.5):.1f} | {at(0.99):.1f} | {times[-1]:.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--heaptap")
    parser.add_argument("--hub", type=int, default=10_000_000)
    parser.add_argument("dump", nargs="?")
    args = parser.parse_args()
    program = args.heaptap or programs.installed()
    with tempfile.TemporaryDirectory() as folder:
        dump = pathlib.Path(args.dump or made(folder, args.hub))
        # What is in no cache would be measured as well.
        with dump.open("rb") as file:
            while file.read(1 << 24):
                pass
        measure(program, dump, args.samples)


def measure(program, dump, samples):
    explorer = Explorer(program, dump)
    try:
        explorer.get("")
        page = explorer.age()
        classes = None
        while True:
            meta = explorer.ask("meta")
            if meta["error"]:
                sys.exit(meta["error"])
            if classes is None and "classes" in meta["built"]:
                explorer.ask("classes")
                classes = explorer.age()
            if meta["heap"] and not meta["step"]:
                break
            time.sleep(0.01)
        indices = explorer.age()
        size = dump.stat().st_size
        print(f"{size / 1e9:.2f} GB, {meta['objects']:,} objects, {meta['classes']:,} classes")
        print(f"page {page:.2f} s, class table {classes:.2f} s, all indices {indices:.2f} s")
        print(f"peak memory {explorer.peak_mib():,.0f} MiB, {explorer.peak_mib() * 1048576 / size:.2f} of the dump\n")
        seed = random.Random(1)
        total = explorer.ask("objects?limit=1")["total"]
        offsets = [seed.randrange(total) for _ in range(samples)]
        ids = [explorer.ask(f"objects?offset={at}&limit=1")["rows"][0]["id"] for at in offsets]
        largest = explorer.ask("classes?sort=count&limit=1")["rows"][0]["name"]
        # Objects of the largest class have a field with what most of them refer to.
        hub = max(hubs(explorer, largest), key=lambda id: explorer.ask(f"object?id={id}&most=0")["referrers"], default=None)
        print("|Query|p50, ms|p99, ms|worst, ms|\n|-|-|-|-|")
        for name, request in OF_OBJECT.items():
            times = [explorer.timed(request.format(id=id)) for id in ids]
            print(f"|{name}|{quantiles(times).replace(' | ', '|')}|")
        for name, request in OF_HEAP.items():
            first = max(1, samples // 20)
            times = [
                explorer.timed(request.format_map({"offset": at, "class": urllib.request.quote(largest)}))
                for at in offsets[:first]
            ]
            print(f"|{name}|{quantiles(times).replace(' | ', '|')}|")
        if hub:
            count = explorer.ask(f"object?id={hub}&most=0")["referrers"]
            for name, request in OF_OBJECT.items():
                times = [explorer.timed(request.format(id=hub)) for _ in range(5)]
                print(f"|{name} of one with {count:,} referrers|{quantiles(times).replace(' | ', '|')}|")
        print(f"\npeak memory after all: {explorer.peak_mib():,.0f} MiB")
    finally:
        explorer.end()


def hubs(explorer, name):
    """IDs of what some objects of a class refer to."""
    rows = explorer.ask(f"objects?class={urllib.request.quote(name)}&limit=20")["rows"]
    for row in rows:
        for field in explorer.ask(f"fields?id={row['id']}&limit=20")["rows"]:
            if field["object"]:
                yield field["object"]["id"]


if __name__ == "__main__":
    main()
