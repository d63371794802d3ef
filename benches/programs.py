"""Builds the programs that the benchmarks run."""

import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
CARGO = ["cargo", "build", "--quiet", "--manifest-path", os.path.join(ROOT, "Cargo.toml")]


def installed():
    """Returns the path of heaptap, built as install.sh builds it."""
    subprocess.run(CARGO + ["--profile", "dist", "--bin", "heaptap"], check=True)
    return os.path.join(TARGET, "dist", "heaptap")


def example(name):
    """Returns the path of one of the examples of the workspace."""
    subprocess.run(CARGO + ["--release", "--example", name], check=True)
    return os.path.join(TARGET, "release", "examples", name)
