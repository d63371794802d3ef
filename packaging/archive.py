#!/usr/bin/env python3
"""Packs a directory: packaging/archive.py FOLDER ARCHIVE.tar.gz|ARCHIVE.zip

The same files give the same bytes: members are sorted, belong to root, and have the time
SOURCE_DATE_EPOCH (default: 1980, the first that ZIP has). `heaptap` and `heaptap.exe` are executable.
"""

import gzip
import io
import os
import sys
import tarfile
import time
import zipfile
from pathlib import Path

FIRST = 315532800  # 1980-01-01


def main():
    folder, goal = Path(sys.argv[1]), Path(sys.argv[2])
    when = max(int(os.environ.get("SOURCE_DATE_EPOCH", FIRST)), FIRST)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    members = []
    for path in files:
        mode = 0o755 if path.name in ("heaptap", "heaptap.exe") else 0o644
        members.append((path.relative_to(folder.parent).as_posix(), mode, path.read_bytes()))
    data = io.BytesIO()
    if goal.name.endswith(".zip"):
        with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name, mode, text in members:
                member = zipfile.ZipInfo(name, time.gmtime(when)[:6])
                member.create_system = 3
                member.compress_type = zipfile.ZIP_DEFLATED
                member.external_attr = (0o100000 | mode) << 16
                archive.writestr(member, text)
    else:
        with gzip.GzipFile("", "wb", 9, data, mtime=0) as packed, tarfile.open(
                fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for name, mode, text in members:
                member = tarfile.TarInfo(name)
                member.size, member.mode, member.mtime = len(text), mode, when
                member.uname = member.gname = "root"
                archive.addfile(member, io.BytesIO(text))
    unfinished = goal.with_name(f"{goal.name}.new")
    unfinished.write_bytes(data.getvalue())
    unfinished.replace(goal)


main()
