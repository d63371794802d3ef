"""Reads what `heaptap convert` wrote into a folder by readers of other people: DuckDB, and the
strict parsers of Python's own library. Totals by dump and view must be those of all.json."""

import csv
import glob
import json
import os
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict

import duckdb

folder = sys.argv[1]
at = lambda *name: os.path.join(folder, *name)


def unique(pairs):
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), f"a key twice: {keys}"
    return dict(pairs)


def loads(name):
    def no(word):
        raise ValueError(f"{word} is no JSON")

    with open(at(name), encoding="utf-8") as file:
        return json.load(file, object_pairs_hook=unique, parse_constant=no)


def same(what, found):
    found = {key: value for key, value in found.items() if value != 0}
    different = {key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key)}
    assert not different, f"{what}: {[(key, expected.get(key), found.get(key)) for key in different]}"
    print(f"{what}: {len(found)} totals")


document = loads("all.json")
expected = {}
for dump in document["dumps"]:
    for measure, total, values in zip(dump["measures"], dump["totals"], dump["values"], strict=True):
        assert sum(values) == total
        if total != 0:
            expected[(dump["number"], dump["heap"]), measure["name"]] = total
assert expected

# --- CSV
found = defaultdict(int)
with open(at("all.csv"), encoding="utf-8", newline="") as file:
    for row in csv.DictReader(file, strict=True):
        assert None not in row and None not in row.values(), row
        assert not any(value[:1] in "=+-@\t\r" for value in row.values() if value), row
        stack = list(row).index("stack")
        for view in list(row)[stack + 1 :]:
            if row[view]:
                found[(int(row["dump"]), row["heap"]), view.split(" (")[0]] += int(row[view])
same("CSV", found)

# --- speedscope
document = loads("all.speedscope.json")
found = {}
for profile in document["profiles"]:
    assert profile["type"] == "sampled"
    weights, samples = profile["weights"], profile["samples"]
    assert len(weights) == len(samples)
    assert all(0 <= frame < len(document["shared"]["frames"]) for sample in samples for frame in sample)
    title, view = profile["name"].rsplit(": ", 1)
    heap, number = re.search(r"(\S+) @(\d+)", title).groups()
    found[(int(number), heap), view] = sum(weights)
    assert profile["endValue"] == sum(weights)
same("speedscope", found)

# --- SVG
found = {}
for path in glob.glob(at("svg", "*.svg")):
    root = ElementTree.parse(path).getroot()
    name = "{http://www.w3.org/2000/svg}"
    assert root.tag == f"{name}svg"
    tags = {element.tag.removeprefix(name) for element in root.iter()}
    assert tags <= {"svg", "title", "desc", "rect", "text", "g"}, tags
    first = root.find(f"{name}g/{name}title").text
    # `all`, then `20.4 MiB (21,417,594 B), 100.00 %` or `512 B` or `12`
    amount = first.split("\n")[1]
    number = re.search(r"\(([\d,]+) B\)", amount) or re.match(r"([\d,]+)", amount)
    parts = os.path.basename(path).split(".")
    heap = "java" if parts[0] == "java_heap_dump" else ".".join(parts[3:-2])
    found[(int(parts[1]), heap), parts[-2]] = int(number.group(1).replace(",", ""))
same("SVG", found)

# --- Parquet by DuckDB, through the views that come with it
os.chdir(at("parquet"))
database = duckdb.connect()
with open("views.sql", encoding="utf-8") as file:
    database.execute(file.read())
columns = [row[0] for row in database.execute("DESCRIBE sample").fetchall()]
views = {"live_bytes": "space", "live_n": "objects", "alloc_bytes": "alloc_space", "alloc_n": "alloc_objects"}
found = {}
for column in columns[4:]:
    if column in ("free_bytes", "free_n"):
        continue
    for dump, heap, total in database.execute(
        f'SELECT d.dump, d.heap, sum("{column}") FROM sample s JOIN dump d ON d.id = s.dump_id GROUP BY ALL'
    ).fetchall():
        if total is not None:
            found[(dump, heap), views.get(column, column)] = int(total)
same("Parquet", found)
# What all stacks begin with comes to all there is.
found = {}
for dump, heap, space, objects in database.execute(
    "SELECT d.dump, d.heap, live_bytes, live_n FROM cumulative c JOIN dump d ON d.id = c.dump_id WHERE callsite = 0"
).fetchall():
    key = (dump, heap)
    found[key, "space"], found[key, "objects"] = int(space or 0), int(objects or 0)
held = {key: value for key, value in expected.items() if key[1] in ("space", "objects")}
assert {key: value for key, value in found.items() if value} == held, (found, held)
# Every stack is there, and as long as it says.
for depth, stack in database.execute("SELECT depth, stack FROM stack WHERE depth < 50").fetchall():
    assert depth == 0 or stack, (depth, stack)
stacks, callsites = database.execute("SELECT (SELECT count(*) FROM stack), (SELECT count(*) FROM callsite)").fetchone()
assert stacks == callsites > 1
database.execute("SELECT * FROM last_dump ORDER BY live_bytes DESC LIMIT 10").fetchall()
version = database.execute(
    "SELECT decode(value) FROM parquet_kv_metadata('sample.parquet') WHERE decode(key) = 'heaptap.version'"
).fetchone()
assert version == ("1",), version
if os.path.exists("object.parquet"):
    # Who dominates nobody's children retains what it is; what the top retains is everything.
    top, all_of_it, reachable, listed = database.execute(
        """SELECT (SELECT sum(retained_bytes) FROM dominator WHERE depth = 1),
                  (SELECT sum(shallow_bytes + native_bytes) FROM object WHERE reachable),
                  (SELECT count(*) FROM object WHERE reachable),
                  (SELECT count(*) FROM dominator)"""
    ).fetchone()
    assert top == all_of_it > 0, (top, all_of_it)
    assert reachable == listed > 0, (reachable, listed)
    by_class, objects = database.execute(
        "SELECT (SELECT sum(objects) FROM class), (SELECT count(*) FROM object WHERE reachable)"
    ).fetchone()
    assert by_class == objects, (by_class, objects)
    unnamed = database.execute("SELECT count(*) FROM dominator WHERE class IS NULL").fetchone()
    assert unnamed == (0,), unnamed

print("all the same")
