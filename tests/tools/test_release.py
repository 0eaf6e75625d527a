"""`./dev release` makes the files of the version that the project has, and of no other."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from tools.docs.manifests import helm
from tools.release import ROOT, notes, wrong_versions


def release(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tools.release", *arguments, "--offline"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)


def test_the_files_are_made_and_what_is_not_is_named(tmp_path: Path) -> None:
    done = release("0.1.0", f"--to={tmp_path}")
    assert done.returncode == 0, done.stderr
    made = {path.name for path in tmp_path.iterdir()}
    chart = {"podtrail-0.1.0.tgz"} if helm() else set()
    assert made == {"podtrail-0.1.0-py3-none-any.whl", "podtrail-0.1.0.tar.gz", "notes.md", "SHA256SUMS"} | chart
    for line in (tmp_path / "SHA256SUMS").read_text("utf-8").splitlines():
        digest, name = line.split()
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == digest
    assert "not made here: signatures" in done.stdout
    again = release("0.1.0", f"--to={tmp_path}")
    assert (again.returncode, again.stderr) == (2, f"release: {tmp_path} is not empty\n")


def test_another_version_is_refused_with_each_place_that_names_this_one() -> None:
    done = release("9.9.9")
    assert done.returncode == 2
    for place in ("pyproject.toml: project.version is 0.1.0", "Chart.yaml: version is 0.1.0", "appVersion is 0.1.0"):
        assert place in done.stderr
    assert not wrong_versions(ROOT, "0.1.0")


def test_notes_are_the_versions_own_section_or_what_is_unreleased() -> None:
    text = "# Changes\n\n## Unreleased\n\n- b\n\n## 1.0.1\n\n- c\n\n## 1.0.0, May\n\n- a\n"
    assert notes(text, "1.0.0") == "- a\n"
    assert notes(text, "2.0.0") == notes(text, "1.0") == "- b\n"
    with pytest.raises(ValueError, match="no section"):
        notes("# Changes\n", "1.0.0")
