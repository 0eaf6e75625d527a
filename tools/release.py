"""`./dev release VERSION`: the files of a release, in out/release/VERSION, each checked as far as this machine can.

Wheel and source distribution (`twine check`, installed into an empty environment), the chart, the notes from the
changelog, and SHA256SUMS. What is not made here is named: images, podtrail-native's wheels, SBOM, signatures.
"""

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

import yaml

from tools.docs.manifests import CHART, helm

ROOT = Path(__file__).parents[1]
LATER = ("images (docker/Dockerfile)", "wheels of podtrail-native", "SBOM", "provenance", "signatures")


def wrong_versions(root: Path, version: str) -> list[str]:
    """Return the places that name another version."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    chart = yaml.safe_load((root / CHART / "Chart.yaml").read_text("utf-8"))
    places = {
        "pyproject.toml: project.version": project,
        f"{CHART}/Chart.yaml: version": chart["version"],
        f"{CHART}/Chart.yaml: appVersion": chart["appVersion"],
    }
    return [f"{place} is {found}" for place, found in places.items() if found != version]


def notes(changelog: str, version: str) -> str:
    """Return the section of a version, or of what is unreleased.

    Raises:
        ValueError: There is neither.
    """
    for heading in (version, "Unreleased"):
        found = re.search(
            rf"^## {re.escape(heading)}(?![\w.])[^\n]*\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL
        )
        if found:
            return found[1].strip() + "\n"
    raise ValueError(f"CHANGELOG.md has no section {version} or Unreleased")


def main() -> int:
    """Make the files; return the exit code."""
    parser = argparse.ArgumentParser(prog="./dev release", description="Make the files of a release.")
    parser.add_argument("version")
    parser.add_argument("--to", type=Path, help="folder; default: out/release/VERSION")
    parser.add_argument("--offline", action="store_true", help="leave out what needs a package index")
    given = parser.parse_args()
    if wrong := wrong_versions(ROOT, given.version):
        print(f"release: this is not {given.version}: {'; '.join(wrong)}", file=sys.stderr)
        return 2
    folder = (given.to or ROOT / "out" / "release" / given.version).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        print(f"release: {folder} is not empty", file=sys.stderr)
        return 2
    _run(sys.executable, "-m", "hatchling", "build", "--directory", str(folder))
    left_out = list(LATER)
    if given.offline:
        left_out += ["twine check", "installing into an empty environment"]
    else:
        _try(folder)
    program = helm()
    if program:
        _run(str(program), "package", str(ROOT / CHART), "--destination", str(folder))
    else:
        left_out.append("the chart: there is no helm, tests/helm/build.sh builds it")
    (folder / "notes.md").write_text(notes((ROOT / "CHANGELOG.md").read_text("utf-8"), given.version), "utf-8")
    files = sorted(folder.iterdir())
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    (folder / "SHA256SUMS").write_text(sums, "utf-8")
    print(sums + "".join(f"not made here: {each}\n" for each in left_out), end="")
    return 0


def _try(folder: Path) -> None:
    """Check the packages' metadata, and run what was installed from the wheel alone."""
    (wheel,) = folder.glob("*.whl")
    with tempfile.TemporaryDirectory() as empty:
        venv.create(empty, with_pip=True)
        binaries = Path(empty) / "bin"
        _run(str(binaries / "pip"), "install", "--quiet", str(wheel))
        _run(str(binaries / "podtrail"), "--version")
        _run(str(binaries / "pip"), "install", "--quiet", "twine")
        _run(str(binaries / "twine"), "check", "--strict", *map(str, folder.iterdir()))


def _run(*command: str) -> None:
    """Run a command in the project's root; its failure ends the release."""
    subprocess.run(command, cwd=ROOT, check=True)  # noqa: S603 - the developer's own tools


if __name__ == "__main__":
    sys.exit(main())
