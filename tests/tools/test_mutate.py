"""`./dev mutate` finds what no test notices, in a project of two rooms made for it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools import mutate

ROOT = Path(__file__).parents[2]

PROJECT = """
[tool.hatch.build]
dev-mode-dirs = ["src"]

[tool.pytest.ini_options]
addopts = ["--import-mode=importlib"]
"""

DOOR = """
def opens(age: int, is_member: bool) -> bool:
    return age >= 18 or is_member


def unseen(age: int) -> int:
    return age + 1
"""

TESTS = """
from toy.door import opens


def test_opens_for_the_old() -> None:
    assert opens(40, False)


def test_stays_closed_for_the_young() -> None:
    assert not opens(4, False)
"""

AT_THE_BOUND = """

def test_opens_from_18() -> None:
    assert opens(18, False)
    assert not opens(17, False)
"""

SURVIVORS = {
    "src/toy/door.py:3: opens: age >= 18 -> age > 18",
    "src/toy/door.py:3: opens: 18 -> 19",
    "src/toy/door.py:7: unseen: return age + 1 -> return None (no test runs it)",
    "src/toy/door.py:7: unseen: age + 1 -> age - 1 (no test runs it)",
    "src/toy/door.py:7: unseen: 1 -> 2 (no test runs it)",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in {
        "pyproject.toml": PROJECT,
        "src/toy/__init__.py": "",
        "src/toy/door.py": DOOR,
        "src/toy/window.py": "def opens() -> bool:\n    return True\n",
        "tests/test_door.py": TESTS,
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def run(project: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "tools.mutate", *arguments],
        cwd=project,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{project / 'src'}"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_what_no_test_notices_is_printed_with_what_becomes_of_each_change(project: Path) -> None:
    done = run(project, "door", "--at-least", "90")

    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert set(lines[1:-1]) == SURVIVORS
    assert lines[-1] == "2 of 7 killed (28.6 %), 0 of them by time; 0 left out as equivalent"
    tests, control, *changes = done.stderr.splitlines()
    assert tests == "tests: tests/test_door.py; first without a change, twice"
    assert re.fullmatch(r"a round without a change: \d+\.\d s", control)
    timeless = [re.sub(r"\(\d+\.\d s\) ", "", line) for line in changes]
    assert [line.partition(" ")[0] for line in timeless] == [f"{number}/7" for number in range(1, 8)]
    told = {line.partition(" ")[2] for line in timeless}
    assert "survives src/toy/door.py:3: opens: 18 -> 19" in told
    assert sum(line.startswith("killed src/toy/door.py:") for line in told) == 2


def test_a_test_that_bites_kills_though_it_imports_only_when_it_runs(project: Path) -> None:
    tests = (TESTS + AT_THE_BOUND).replace("from toy.door import opens\n", "")
    lazily = tests.replace(" -> None:\n", " -> None:\n    from toy.door import opens\n\n")
    (project / "tests/test_door.py").write_text(lazily, encoding="utf-8")

    lines = run(project, "door").stdout.splitlines()

    assert set(lines[1:-1]) == {survivor for survivor in SURVIVORS if "unseen" in survivor}


def test_what_is_known_to_be_equivalent_counts_neither_way(project: Path) -> None:
    (project / "tools").mkdir()
    (project / "tools/equivalents.toml").write_text(
        '["src/toy/door.py"]\n"opens: 18 -> 19" = "nobody is 18"\n"opens: gone -> away" = "long ago"\n'
    )

    done = run(project, "src/toy/door.py")

    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[-1] == "2 of 6 killed (33.3 %), 0 of them by time; 1 left out as equivalent"
    assert lines[0] == "tools/equivalents.toml: src/toy/door.py has no 'opens: gone -> away' any more"


def test_a_sample_is_the_same_with_the_same_seed(project: Path) -> None:
    room = mutate.Room(project, "door", [])

    once, again, other = ([mutant.name for mutant, _ in mutate._chosen(room, 3, seed)] for seed in (1, 1, 5))

    assert once == again != other
    assert len(once) == 3


def test_tests_that_fail_unchanged_are_told(project: Path) -> None:
    (project / "tests/test_door.py").write_text("def test_never() -> None:\n    assert False\n")

    done = run(project, "door")

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "mutate: the tests fail without any change"


def test_a_change_that_never_ends_is_killed(project: Path) -> None:
    (project / "src/toy/door.py").write_text("def count(n):\n    while n != 0:\n        n -= 1\n    return n\n")
    (project / "tests/test_door.py").write_text(
        "from toy.door import count\n\n\ndef test_counts_down() -> None:\n    assert count(3) == 0\n"
    )

    done = run(project, "door", "--patience", "1", "--sample", "1")

    assert "1 of 1 killed (100.0 %), 1 of them by time" in done.stdout


@pytest.mark.parametrize(
    ("room", "said"),
    [
        ("window", "mutate: no tests mirror window; --tests PATH says which to run"),
        ("cellar", "mutate: cellar is nothing; one room, please"),
    ],
)
def test_what_can_not_be_tried_is_refused(project: Path, room: str, said: str) -> None:
    with pytest.raises(SystemExit, match=re.escape(said)):
        mutate.Room(project, room, [])
