#!/usr/bin/env python3
"""Fills the templates of a release from its version, address and checksums:

    packaging/manifests.py --version 0.1.0 --address ADDRESS --homepage URL --publisher NAME DIR

DIR has SHA256SUMS and receives install.sh, install.ps1, the Homebrew formula, the Scoop manifest and
the winget manifests. ADDRESS is the directory of a release's files; {version} in it is the version.
A missing checksum or a value that is not filled in ends the script with an error.
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = ROOT / "packaging/templates"
ARCHIVE = "heaptap-{version}-{target}.{ending}"


def archive(version, target):
    ending = "zip" if "windows" in target else "tar.gz"
    return ARCHIVE.format(version=version, target=target, ending=ending)


def checksums(path):
    found = {}
    for line in path.read_text().splitlines():
        digest, _, name = line.partition("  ")
        if not re.fullmatch(r"[0-9a-f]{64}", digest) or not name:
            sys.exit(f"manifests.py: {path}: not a checksum: {line!r}")
        found[name] = digest
    return found


def filled(text, options, sums):
    def value(match):
        word, _, target = match.group(1).partition(":")
        if not target:
            return {
                "VERSION": options.version,
                "HOMEPAGE": options.homepage,
                "PUBLISHER": options.publisher,
                "ADDRESS": options.address,
            }[word]
        name = archive(options.version, target)
        if word.startswith("SHA256"):
            if name not in sums:
                sys.exit(f"manifests.py: SHA256SUMS lacks {name}")
            digest = sums[name]
            return digest.upper() if word == "SHA256UPPER" else digest
        version = {"URL": options.version, "PATTERN": "$version"}[word]
        return f"{options.address.replace('{version}', version)}/{archive(version, target)}"

    return re.sub(r"@([A-Z0-9]+(?::[a-z0-9_-]+)?)@", value, text)


def checked(what, text, pattern):
    """The text, which is put into scripts and YAML, if nothing in it has a meaning there."""
    if not re.fullmatch(pattern, text):
        sys.exit(f"manifests.py: {what} cannot be {text!r}")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for option in ("version", "address", "homepage", "publisher"):
        parser.add_argument(f"--{option}", required=True)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    checked("the version", options.version, r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?")
    checked("the publisher", options.publisher, r"[0-9A-Za-z][0-9A-Za-z-]*")
    url = r"(https?|file)://[0-9A-Za-z._~:/{}-]+"
    for what in ("address", "homepage"):
        setattr(options, what, checked(f"the {what}", getattr(options, what), url).rstrip("/"))

    sums = checksums(options.folder / "SHA256SUMS")
    winget = f"winget/{options.publisher}.heaptap"
    outputs = {
        "install.sh": ROOT / "install.sh",
        "install.ps1": ROOT / "install.ps1",
        "heaptap.rb": TEMPLATES / "heaptap.rb",
        "heaptap.json": TEMPLATES / "scoop.json",
        f"{winget}.yaml": TEMPLATES / "winget.version.yaml",
        f"{winget}.installer.yaml": TEMPLATES / "winget.installer.yaml",
        f"{winget}.locale.en-US.yaml": TEMPLATES / "winget.locale.en-US.yaml",
    }
    for name, template in outputs.items():
        path = options.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(filled(template.read_text(), options, sums), newline="\n")
        path.chmod(0o755 if name == "install.sh" else 0o644)
        print(path)


main()
