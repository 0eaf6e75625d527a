from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from podtrail.cli import main
from podtrail.testing.attempts import START, MadeAttempt, no_room
from tests.extensions.held_page import held_page

STORY = str(Path(__file__).parents[2] / "examples" / "story" / "story.otlp.zst")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["report", *arguments])


@pytest.fixture
def page() -> Iterator[str]:
    """The address of a running page that holds a Pod that waits, and one name in two namespaces."""
    with held_page(no_room(), *(MadeAttempt(uid=n, namespace=n, name="twice") for n in "ab")) as address:
        yield address


def test_a_running_page_writes_a_pods_report(page: str) -> None:
    done = run("pod", "web-0", "--endpoint", page)
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, "# Pod `default/web-0`")
    assert "No node fits" in done.stdout
    done = run("pod", "default/web-0", "--endpoint", page, "-o", "html")
    assert done.stdout.startswith("<!doctype html>")


def test_a_running_page_writes_an_incident(page: str) -> None:
    done = run("incident", "--from", str(START // 10**9), "--to", str(START // 10**9 + 60), "--endpoint", page)
    assert done.exit_code == 0
    assert "3 attempts of 3 Pods in 1m" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("pod", "nobody"), 1, "nothing is known of Pod nobody (asked http://localhost:"),
        (("pod", "twice"), 1, "2 namespaces have a Pod twice: a, b; say which with -n or --cluster"),
        (("pod", "a/twice", "-n", "b"), 2, "the namespace is given twice"),
        (("pod", "wbe-0"), 1, "nothing is known of Pod wbe-0; there is default/web-0"),
        (("incident", "--from", "later"), 2, "from is no moment: later; write 14:02"),
    ],
)
def test_what_a_page_can_not_answer_is_said(page: str, arguments: tuple[str, ...], code: int, words: str) -> None:
    done = run(*arguments, "--endpoint", page)
    assert (done.exit_code, done.stdout) == (code, "")
    assert words in done.stderr


def test_recordings_are_asked_alike() -> None:
    done = run("pod", "default/crash", STORY)
    assert done.stdout.startswith("# Pod `default/crash`")
    assert "container main exited with 3" in done.stdout
    done = run("pod", "default/crash", STORY, "-o", "html")
    assert done.stdout.startswith("<!doctype html>")
    assert run("pod", "nobody", STORY).exit_code == 1
    done = run("incident", "--to", "yesterday", STORY)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "to is no moment: yesterday" in done.stderr


def test_nobody_there_and_no_recording_end_with_words(tmp_path: Path) -> None:
    done = run("incident", "--endpoint", "http://localhost:1")
    assert done.exit_code == 1
    assert "no podtrail page at http://localhost:1" in done.stderr
    (tmp_path / "x.jsonl").write_text("nonsense\n")
    done = run("pod", "x", str(tmp_path / "x.jsonl"))
    assert done.exit_code in (1, 2)
    assert run("pod", "x", str(tmp_path / "missing.jsonl")).exit_code == 2
