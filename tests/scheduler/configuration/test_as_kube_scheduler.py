"""Documents that kube-scheduler v1.37.1 read: what it wrote of those it took, what it said of those it refused.

Both were recorded from the real one; with its binary present they are checked against it again.
"""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from podtrail_scheduler.configuration.encoding import encode
from podtrail_scheduler.configuration.errors import ConfigurationError

from tests.scheduler.configuration.reading import Read
from tests.sizes import large

HERE = Path(__file__).parent
LOGGED = re.compile(r'"command failed" err="((?:[^"\\]|\\.)*)"')
LOGGED_LINES = re.compile(r'"command failed" err=<\n((?:\t.*\n)*) >')


def recorded(folder: str) -> list[Path]:
    return sorted((HERE / folder).glob("*.yaml"))


def asked_again(folder: str) -> list[Path]:
    """Those that are put to the real one again: every tenth, or all."""
    return recorded(folder)[:: large(10, 1)]


def name(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("document", recorded("accepted"), ids=name)
def test_completes_what_kube_scheduler_takes_in_the_same_way(document: Path, reading: Read) -> None:
    written = yaml.safe_load(document.with_suffix(".written").read_text())

    assert yaml.safe_load(encode(reading(document.read_text()))) == written


@pytest.mark.parametrize("document", recorded("accepted"), ids=name)
def test_takes_what_it_wrote_and_writes_it_again(document: Path, reading: Read) -> None:
    written = encode(reading(document.read_text()))

    assert encode(reading(written)) == written


@pytest.mark.parametrize("document", recorded("refused"), ids=name)
def test_refuses_what_kube_scheduler_refuses_in_its_words(document: Path, reading: Read) -> None:
    with pytest.raises(ConfigurationError) as refused:
        reading(document.read_text())

    assert refused.value.message == document.with_suffix(".txt").read_text()


@pytest.mark.parametrize("document", recorded("refused"), ids=name)
def test_locates_every_problem_in_the_file(document: Path, reading: Read) -> None:
    with pytest.raises(ConfigurationError) as refused:
        reading(document.read_text(), str(document))

    lines = str(refused.value).replace("\n  ", " ").replace("\n'", " '").splitlines()
    assert lines
    assert all(re.match(rf"{re.escape(str(document))}:\d+:\d+: ", line) for line in lines if ".yaml" in line)


@pytest.mark.control_plane
@pytest.mark.parametrize("document", asked_again("accepted"), ids=name)
def test_the_real_kube_scheduler_still_writes_that(document: Path, kube_scheduler: Path, tmp_path: Path) -> None:
    written = tmp_path / "written.yaml"

    ended = run(kube_scheduler, document, written)

    assert ended.returncode == 0, ended.stderr
    assert yaml.safe_load(written.read_text()) == yaml.safe_load(document.with_suffix(".written").read_text())


@pytest.mark.control_plane
@pytest.mark.parametrize("document", asked_again("refused"), ids=name)
def test_the_real_kube_scheduler_still_says_that(document: Path, kube_scheduler: Path, tmp_path: Path) -> None:
    ended = run(kube_scheduler, document, tmp_path / "written.yaml")

    assert ended.returncode == 1
    assert said(ended.stderr) == document.with_suffix(".txt").read_text()


def run(kube_scheduler: Path, document: Path, written: Path) -> "subprocess.CompletedProcess[str]":
    """It connects to nothing: it writes its configuration, or ends, before it would."""
    arguments = ["--config", str(document), "--write-config-to", str(written), "--master", "http://127.0.0.1:1"]
    command = [str(kube_scheduler), *arguments, "--secure-port=0"]  # several may run at once
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def said(log: str) -> str:
    """The error in a log of klog's."""
    if (quoted := LOGGED.search(log)) is not None:
        return str(json.loads(f'"{quoted[1]}"'))
    lines = LOGGED_LINES.search(log)
    assert lines is not None, log
    return "\n".join(line.removeprefix("\t") for line in lines[1].splitlines())
