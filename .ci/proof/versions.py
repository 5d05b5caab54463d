"""Versions that pages and manifests repeat: of Heatsink, by the workspace's, and of what it is tested with, by the lock files."""

import json
import re
import tomllib
from collections import defaultdict
from pathlib import Path

TESTED_WITH = "docs/reference/tested-with.md"
# What pins packages of Python. One version of each is installed wherever it is used.
PINS = [
    "clients/python/requirements.txt", "clients/python/traces/requirements.txt", "packaging/wheel/pyproject.toml",
    "packaging/wheel/requirements.txt", "packaging/wheel/tests/requirements.txt",
]
# Names of packages and images, and the lines of manifests, with Heatsink's version.
OWN = re.compile(r'(?:heatsink(?:-linux-x64)?[-_:]|newTag: "|^heatsink-\S+ = \{ path = .* version = ")(\d+\.\d+\.\d+)', re.MULTILINE)


def pinned(root):
    """The versions of each Python package that files pin, by its name in small letters."""
    found = defaultdict(set)
    for file in PINS:
        for name, version in re.findall(r"([\w-]+)(?:\[\w+\])?==([\w.]+)", (root / file).read_text()):
            found[name.lower()].add(version)
    return found


def locked(root):
    """The versions of each package that is locked or pinned, by its name in small letters."""
    found = pinned(root)
    for package in tomllib.loads((root / "Cargo.lock").read_text())["package"]:
        found[package["name"].lower()].add(package["version"])
    for path, package in json.loads((root / "clients/js/package-lock.json").read_text())["packages"].items():
        if path.startswith("node_modules/"):
            found[path.removeprefix("node_modules/").lower()].add(package["version"])
    return found


def rows(page):
    """A name and a version of each row: in two cells, or both in the second."""
    for label, version in re.findall(r"^\| ([^|]+) \| ([^|]+) \|", page, re.MULTILINE):
        yield re.split(r",| \(", label)[0].lower().replace(" ", ""), version
        yield version.rpartition(" ")[0].lower(), version.rpartition(" ")[2]


def check(root, names):
    """What differs, each in one line. `names`: the pages."""
    root, faults = Path(root).resolve(), []
    own = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    manifests = (file.relative_to(root) for file in sorted(root.glob("packaging/kubernetes/*/kustomization.yaml")))
    for name in [*names, "Cargo.toml", *manifests]:
        for version in sorted(set(OWN.findall((root / name).read_text())) - {own}):
            faults.append(f"{name}: heatsink {version}, and Cargo.toml has {own}")
    for name, versions in sorted(pinned(root).items()):
        if len(versions) > 1:
            faults.append(f"{name} is pinned at {' and '.join(sorted(versions))} in {', '.join(PINS)}")
    known = locked(root)
    judged = [(name, version) for name, version in rows((root / TESTED_WITH).read_text()) if name in known]
    for name, version in judged:
        if version not in known[name]:
            faults.append(f"{TESTED_WITH}: {name} {version}, locked is {', '.join(sorted(known[name]))}")
    if not judged:
        faults.append(f"{TESTED_WITH}: no row names a locked package")
    return faults
