"""Lists the Go modules inside podtrail-kube-scheduler, and writes the licence notices that its image has to contain.

    python3 tools/third_party.py                     writes instrumentation/go/third-party.csv, all minor releases
    python3 tools/third_party.py --check             exit code 1 if that file is stale or a licence is missing
    python3 tools/third_party.py --notices 1.37 FILE writes the notices of the binary for that release

The modules are those whose packages the binary links, and Go's standard library. Texts come from the module cache:
LICENSE, NOTICE and their like at a module's root and in each folder between it and a linked package, where forked code
has its own. It needs Go and nothing else than Python's standard library.
"""

import argparse
import csv
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCE: Final = ROOT / "instrumentation" / "go" / "kubescheduler"
LIST: Final = ROOT / "instrumentation" / "go" / "third-party.csv"
MINORS: Final = {"1.35": "go-1.35.mod", "1.36": "go-1.36.mod", "1.37": "go.mod"}
"""Minor releases of Kubernetes, and the go.mod of each."""
OWN: Final = "podtrail/"
STANDARD: Final = "the Go standard library"
_FILE: Final = re.compile(r"(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE|PATENTS)([.-].*)?", re.IGNORECASE)
_KINDS: Final = (
    ("Apache-2.0", r"Apache License,?\s+Version 2\.0|http://www\.apache\.org/licenses/LICENSE-2\.0"),
    ("MPL-2.0", r"Mozilla Public License,? (?:Version|v\.) ?2\.0"),
    ("MIT", r"Permission is hereby granted, free of charge, to any person"),
    ("ISC", r"Permission to use, copy, modify, and(?:/or)? distribute this software for any\s+purpose"),
    ("BSD-3-Clause", r"Redistribution and use in source and binary forms(?s:.*)(?:Neither|neither) the name"),
    ("CC-BY-4.0", r"Attribution 4\.0 International"),
)
_BSD: Final = re.compile(r"Redistribution and use in source and binary forms")


class Incomplete(Exception):
    """A module whose licence is not there, or not one of those known here."""


@dataclass
class Module:
    """A module that a binary links, with the texts of its licences by their paths in it."""

    path: str
    version: str
    texts: dict[str, str] = field(default_factory=dict)

    def licences(self) -> str:
        """The SPDX identifiers of all its texts; raises Incomplete if there are none."""
        found = {name for path, text in self.texts.items() if not _is_notice(path) for name in identified(text)}
        if not found:
            raise Incomplete(f"{self.path} {self.version}: no licence is found in {', '.join(self.texts) or 'no file'}")
        return " AND ".join(sorted(found))


def identified(text: str) -> Iterator[str]:
    """The SPDX identifiers of the licences in a text."""
    found = [name for name, pattern in _KINDS if re.search(pattern, re.sub(r"\s+", " ", text))]
    yield from found
    if "BSD-3-Clause" not in found and _BSD.search(text):
        yield "BSD-2-Clause"


def linked(packages: Iterable[Mapping[str, object]], goroot: Path) -> dict[str, Module]:
    """The modules of packages as `go list -deps -json` describes them, by path, with what their licences say."""
    modules: dict[str, Module] = {}
    for package in packages:
        module = package.get("Module")
        if package.get("Standard"):
            found = modules.setdefault(STANDARD, Module(STANDARD, _version_of(goroot)))
            found.texts |= _texts(goroot, goroot)
        elif isinstance(module, dict) and not module["Path"].startswith(OWN):
            origin = module.get("Replace", module)
            found = modules.setdefault(module["Path"], Module(module["Path"], origin["Version"]))
            found.texts |= _texts(Path(origin["Dir"]), Path(str(package["Dir"])))
    return modules


def _version_of(goroot: Path) -> str:
    return (goroot / "VERSION").read_text(encoding="utf-8").split()[0]


def _texts(root: Path, folder: Path) -> dict[str, str]:
    """What lies in a folder and those above it up to the root."""
    found = {}
    for each in (folder, *folder.parents):
        if not each.is_relative_to(root):
            break
        for path in sorted(each.iterdir()):
            if _FILE.fullmatch(path.name) and path.is_file():
                found[path.relative_to(root).as_posix()] = path.read_text(encoding="utf-8", errors="replace")
    return found


def _is_notice(path: str) -> bool:
    return Path(path).name.upper().startswith(("NOTICE", "PATENTS"))


def modules_of(minor: str) -> dict[str, Module]:
    """The modules inside the binary for a minor release. Raises CalledProcessError, Incomplete."""
    flags = f"-mod=readonly -modfile={MINORS[minor]}"
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": flags, "GOOS": "linux"}
    tag = f"kube{minor.replace('.', '')}"

    def go(*arguments: str) -> str:
        command = ["go", *arguments]
        run = subprocess.run(command, cwd=SOURCE, env=environment, check=True, stdout=subprocess.PIPE)  # noqa: S603
        return run.stdout.decode()

    listed = go("list", "-tags", tag, "-deps", "-json=Dir,Module,Standard", "./cmd/podtrail-kube-scheduler")
    decoder, packages, at = json.JSONDecoder(), [], 0
    while (at := _next(listed, at)) < len(listed):
        package, at = decoder.raw_decode(listed, at)
        packages.append(package)
    return linked(packages, Path(go("env", "GOROOT").strip()))


def _next(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def table(releases: Mapping[str, Mapping[str, Module]]) -> str:
    """The list: a line for each module, with its licences and its version in the binary for each minor release."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("module", "licence", *releases))
    for path in sorted({path for modules in releases.values() for path in modules} - {STANDARD}):
        found = [modules[path] for modules in releases.values() if path in modules]
        licences = sorted({module.licences() for module in found})
        versions = [modules[path].version if path in modules else "" for modules in releases.values()]
        writer.writerow((path, " / ".join(licences), *versions))
    return out.getvalue()


def notices(minor: str, modules: Mapping[str, Module]) -> str:
    """The notices of a binary: each text once, below the modules that have it."""
    by_text = {(ROOT / "LICENSE").read_text("utf-8"): ["podtrail: LICENSE"]}
    for module in modules.values():
        module.licences()  # or it is incomplete
        for path, text in module.texts.items():
            by_text.setdefault(text, []).append(f"{module.path} {module.version}: {path}")
    line = "=" * 100
    parts = [f"podtrail-kube-scheduler for Kubernetes {minor} contains these works, under these terms.\n"]
    for text, owners in by_text.items():
        parts.append("\n".join((line, *owners, line, "", text)))
    return "\n".join(parts)


def main(arguments: list[str]) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description="Go modules inside podtrail-kube-scheduler, and their licences")
    parser.add_argument("--check", action="store_true", help="whether the list is current")
    parser.add_argument("--notices", nargs=2, metavar=("MINOR", "FILE"), help="write the notices of a release")
    options = parser.parse_args(arguments)
    try:
        if options.notices:
            minor, file = options.notices
            Path(file).write_text(notices(minor, modules_of(minor)), encoding="utf-8")
            return 0
        wanted = table({minor: modules_of(minor) for minor in MINORS})
    except Incomplete as problem:
        print(f"third_party: {problem}", file=sys.stderr)
        return 1
    if not options.check:
        LIST.write_text(wanted, encoding="utf-8")
    elif not LIST.is_file() or LIST.read_text(encoding="utf-8") != wanted:
        print(f"third_party: {LIST.relative_to(ROOT)} is stale: run python3 tools/third_party.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
