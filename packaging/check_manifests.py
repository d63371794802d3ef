#!/usr/bin/env python3
"""Checks the manifests of a release against its archives: packaging/check_manifests.py RELEASE

Each file that a manifest names is in the archive, each checksum is that of the archive, and
the manifests have the fields that Scoop and winget require. winget's schemas are used too if
HEAPTAP_WINGET_SCHEMAS is a directory of them (manifest.installer.1.12.0.json and so on).
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path


def fields(text):
    """The scalar fields of YAML that has no nesting besides lists."""
    found = {}
    for line in text.splitlines():
        if match := re.match(r"[- ]*([A-Za-z0-9]+): (.+)$", line):
            found[match.group(1)] = match.group(2).strip("'")
    return found


def main():
    release = Path(sys.argv[1])
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in release.iterdir() if path.is_file()}
    texts = {path: path.read_text() for path in sorted(release.rglob("*"))
             if path.suffix in (".rb", ".json", ".yaml", ".sh", ".ps1") and ".cdx." not in path.name}
    assert len(texts) == 7, list(texts)
    for path, text in texts.items():
        assert not re.search(r"@[A-Z0-9]+(:[a-z0-9_-]+)?@", text), f"{path} is not filled in"

    scoop = json.loads((release / "heaptap.json").read_text())
    for field in ("version", "description", "homepage", "license", "architecture", "bin"):
        assert scoop[field], field
    one = scoop["architecture"]["64bit"]
    name = one["url"].rsplit("/", 1)[1]
    assert one["hash"] == sums[name], name
    with zipfile.ZipFile(release / name) as archive:
        assert f"{one['extract_dir']}/{scoop['bin']}" in archive.namelist(), archive.namelist()

    formula = (release / "heaptap.rb").read_text()
    pairs = re.findall(r'url "([^"]+)"\n +sha256 "([^"]+)"', formula)
    assert len(pairs) == 3, pairs
    for url, digest in pairs:
        assert digest == sums[url.rsplit("/", 1)[1]], url

    winget = {path: fields(text) for path, text in texts.items() if path.suffix == ".yaml"}
    kinds = {manifest["ManifestType"]: manifest for manifest in winget.values()}
    assert set(kinds) == {"version", "installer", "defaultLocale"}, kinds
    assert len({(m["PackageIdentifier"], m["PackageVersion"], m["ManifestVersion"])
                for m in kinds.values()}) == 1
    installer = kinds["installer"]
    assert installer["InstallerSha256"] == sums[name].upper()
    with zipfile.ZipFile(release / name) as archive:
        assert installer["RelativeFilePath"].replace("\\", "/") in archive.namelist()
    for field in ("PackageLocale", "Publisher", "PackageName", "License", "ShortDescription"):
        assert kinds["defaultLocale"][field], field
    assert kinds["version"]["DefaultLocale"] == kinds["defaultLocale"]["PackageLocale"]
    schemas = os.environ.get("HEAPTAP_WINGET_SCHEMAS")
    for path, manifest in winget.items() if schemas else ():
        schema = (f"{schemas}/manifest.{manifest['ManifestType']}."
                  f"{manifest['ManifestVersion']}.json")
        subprocess.run(["check-jsonschema", "--schemafile", schema, path], check=True)
    print(f"{len(texts)} files are filled in and match the archives")


main()
