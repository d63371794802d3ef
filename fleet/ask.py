#!/usr/bin/env python3
"""Asks a store of `heaptap archive` a question, with DuckDB or Spark SQL from PyPI.

    ask.py STORE QUESTION --app com.example.app --from 41 --to 42 [--engine spark]

A question is the name of a file in this directory, or `all`. --from and --to are builds.
"""

import argparse
import json
import os
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
QUESTIONS = ["grew", "classes", "top", "outliers", "leaks"]


def text(name, values):
    """A file of statements with its placeholders replaced."""
    sql = (HERE / name).read_text(encoding="utf-8")
    for key, value in values.items():
        sql = sql.replace("${%s}" % key, value)
    return sql


def statements(sql):
    lines = [line for line in sql.splitlines() if not line.lstrip().startswith("--")]
    return [part.strip() for part in "\n".join(lines).split(";") if part.strip()]


class DuckDB:
    def __init__(self):
        import duckdb

        self.connection = duckdb.connect()

    def run(self, statement):
        self.connection.execute(statement)

    def ask(self, statement):
        cursor = self.connection.execute(statement)
        return [column[0] for column in cursor.description], cursor.fetchall()


class Spark:
    def __init__(self):
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[*]").appName("heaptap fleet")
        # Questions are short: without these settings, Spark plans and compiles longer than it reads.
        settings = {
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.shuffle.partitions": str(os.cpu_count()),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "4g",
            "spark.log.level": "ERROR",
        }
        for key, value in settings.items():
            builder = builder.config(key, value)
        self.session = builder.getOrCreate()

    def run(self, statement):
        self.session.sql(statement)

    def ask(self, statement):
        frame = self.session.sql(statement)
        return frame.columns, [tuple(row) for row in frame.collect()]


def shown(value):
    """A cell for the terminal: names come from devices, so controls are not printed."""
    line = "" if value is None else str(value)
    line = "".join(c if c.isprintable() else "\ufffd" for c in line)
    return line if len(line) <= 60 else "…" + line[-59:]


def print_table(columns, rows):
    cells = [list(columns)] + [[shown(value) for value in row] for row in rows]
    widths = [max(len(row[at]) for row in cells) for at in range(len(columns))]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store", metavar="STORE")
    parser.add_argument("question", metavar="QUESTION", choices=[*QUESTIONS, "all"])
    parser.add_argument("--app", required=True)
    parser.add_argument("--from", dest="old", default="", help="the earlier build")
    parser.add_argument("--to", dest="new", default="", help="the later build")
    parser.add_argument("--engine", choices=["duckdb", "spark"], default="duckdb")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    args = parser.parse_args()
    store = str(pathlib.Path(args.store).resolve())
    if not pathlib.Path(store, "v1").is_dir():
        parser.error(f"{args.store} is not a store of heaptap archive")
    values = {"store": store, "app": args.app, "from": args.old, "to": args.new}
    asked = QUESTIONS if args.question == "all" else [args.question]
    for option, key in [("--from", "from"), ("--to", "to")]:
        uses = [name for name in asked if "${%s}" % key in text(f"{name}.sql", {})]
        if uses and not values[key]:
            parser.error(f"{uses[0]} needs {option}")
    for value in values.values():
        if any(c in value for c in "'\\$;") or not value.isprintable():
            parser.error(f"{value!r} cannot be part of a statement")
    began = time.monotonic()
    engine = {"duckdb": DuckDB, "spark": Spark}[args.engine]()
    for name in [f"prologue.{args.engine}.sql", "views.sql"]:
        for statement in statements(text(name, values)):
            engine.run(statement)
    _, rows = engine.ask("SELECT build FROM recording GROUP BY build ORDER BY build")
    builds = [build for (build,) in rows]
    if not builds:
        parser.error(f"the store has no recording of {args.app}")
    for build in filter(None, [args.old, args.new]):
        if build not in builds:
            parser.error(f"the store has no build {build!r} of {args.app}: {shown(', '.join(builds))}")
    report = {"engine": args.engine, "start_s": round(time.monotonic() - began, 2)}
    for name in asked:
        began = time.monotonic()
        (statement,) = statements(text(f"{name}.sql", values))
        columns, rows = engine.ask(statement)
        seconds = round(time.monotonic() - began, 2)
        report[name] = {"seconds": seconds, "columns": columns, "rows": [list(r) for r in rows]}
        if not args.json:
            print_table(columns, rows)
            print(f"{name}: {len(rows)} rows in {seconds} s\n", file=sys.stderr)
    if args.json:
        json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
