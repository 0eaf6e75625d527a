"""`podtrail test` as a person and as CI meet it: output, exit codes, files, updates, watching."""

import json
import os
import signal
import threading
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

from podtrail.cli import main
from tests.forks import Fork

PATIENCE = 600.0
CONFIG = """\
receivers: {otlp: {protocols: {grpc: }}}
exporters: {debug: }
processors:
  tail_sampling:
    policies:
      - {name: failed, type: scheduling_result, scheduling_result: {results: [Unschedulable]}}
      - {name: slow, type: slow_attempt, slow_attempt: {threshold: 1s}}
  link_stitching:
service: {pipelines: {traces: {receivers: [otlp], processors: [tail_sampling, link_stitching], exporters: [debug]}}}
"""
TESTS = """\
# Tests of policies.
config: policies.yaml
cases:
  - name: failures are kept # all of them
    given:
      - pod web-0: 2 failures by NodeAffinity, then success
    expect:
      pod web-0: kept by failed   # really?
      pod web-0 attempt 2:
        {decision: kept, by: 'slow', links: []} # in full
      kept: 7

  # Slow ones.
  - name: slow attempts are kept
    given: [pod web-1: success in 2s]
    expect: [{at: 3s, pod web-1: pending}, {pod web-1: "kept by slow because longer than 2s"}]
"""
UPDATED = """\
# Tests of policies.
config: policies.yaml
cases:
  - name: failures are kept # all of them
    given:
      - pod web-0: 2 failures by NodeAffinity, then success
    expect:
      pod web-0 attempts 1-2: kept by failed
      pod web-0 attempt 3: dropped   # really?
      pod web-0 attempt 2:
        {decision: kept, by: 'failed', links: [{type: previous-attempt, to: attempt 1, resolved: true}]} # in full
      kept: 2

  # Slow ones.
  - name: slow attempts are kept
    given: [pod web-1: success in 2s]
    expect: [{at: 3s, pod web-1: pending}, {pod web-1: "kept by slow because SchedulePod took 2000 ms, longer than 1s"}]
"""
GOOD = """\
config: policies.yaml
cases:
  - name: failures are kept
    given: [pod web-0: failure]
    expect: {pod web-0: kept by failed}
"""


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a configuration, where the command is run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policies.yaml").write_text(CONFIG, encoding="utf-8")
    return tmp_path


def write(folder: Path, text: str, name: str = "policies_test.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["test", *arguments])


def test_what_passes_is_counted_by_file_and_ends_with_0(folder: Path) -> None:
    write(folder, GOOD)
    write(folder, GOOD, "more.test.yaml")
    write(folder, "no: test", "values.yaml")
    done = run(".")
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert lines[:3] == [
        "more.test.yaml: 1 passed",
        "policies_test.yaml: 1 passed",
        "never said yes: slow (--coverage shows all policies)",
    ]
    assert lines[3].startswith("2 cases: 2 passed in ")


def test_what_fails_begins_with_a_line_to_grep_and_ends_with_1(folder: Path) -> None:
    write(folder, GOOD.replace("by failed", "by slow"))
    done = run("policies_test.yaml")
    assert done.exit_code == 1
    assert done.output.splitlines()[:6] == [
        "policies_test.yaml:5:14: failures are kept: pod web-0: expected by slow, got failed",
        "    by  expected  slow",
        "        got       failed",
        "    how the policies voted on pod web-0:",
        "      failed  yes   scheduler.result=Unschedulable",
        "      slow    no    SchedulePod took 9 ms, not longer than 1s",
    ]


def test_a_bad_file_ends_with_2_and_the_others_are_run(folder: Path) -> None:
    write(folder, GOOD.replace("failure]", "failre]"), "bad_test.yaml")
    write(folder, GOOD)
    done = run(".")
    assert done.exit_code == 2
    assert "policies_test.yaml: 1 passed" in done.stdout
    assert "bad_test.yaml:4:24: cases::0::given::0::pod web-0: an outcome can't be 'failre'" in done.stderr
    assert "did you mean failure?" in done.stderr


def test_a_bad_configuration_ends_with_2_and_its_own_place(folder: Path) -> None:
    write(folder, CONFIG.replace("threshold: 1s", "threshold: 1"), "policies.yaml")
    write(folder, CONFIG.replace("slow_attempt: {", "slow_atempt: {"), "policies.yaml")
    write(folder, GOOD)
    done = run("policies_test.yaml")
    assert done.exit_code == 2
    assert "policies.yaml:7:" in done.stderr
    assert "slow_atempt" in done.stderr


def test_what_is_hardly_meant_in_the_processors_is_warned_of(folder: Path) -> None:
    write(
        folder,
        CONFIG.replace("threshold: 1s", "threshold: 1").replace("debug: }", "debug: , file: {}}"),
        "policies.yaml",
    )
    write(folder, GOOD)
    done = run(".")
    assert done.exit_code == 0
    assert "warning: policies.yaml:7:" in done.stderr
    assert "1 without a unit is 1 nanoseconds" in done.stderr
    assert "exporters" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing argument 'FILE...'"),
        (("nowhere_test.yaml",), "there is no such file"),
        (("empty",), "no file in empty is named *_test.yaml or *.test.yaml"),
        (("policies_test.yaml", "-k", "nobody"), "there is no case with 'nobody' in its name"),
        (("policies_test.yaml", "--watch", "--update"), "exclude one another"),
    ],
)
def test_a_mistake_of_usage_ends_with_2(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    write(folder, GOOD)
    (folder / "empty").mkdir()
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.output


def test_cases_are_chosen_by_a_part_of_their_name(folder: Path) -> None:
    write(folder, TESTS)
    assert "1 case: 0 passed, 1 failed" in run(".", "-k", "SLOW").output


def test_coverage_counts_policies_and_fails_when_asked(folder: Path) -> None:
    write(folder, GOOD)
    done = run(".", "--coverage")
    assert done.exit_code == 0
    assert [line.split() for line in done.output.splitlines()[1:4]] == [
        ["POLICY", "SAID", "YES", "DECIDED", "policies.yaml"],
        ["failed", "1", "1"],
        ["slow", "0", "0", "never", "said", "yes"],
    ]
    done = run(".", "--fail-on-uncovered")
    assert done.exit_code == 1
    assert "never said yes" in done.output


def test_json_tells_all_in_one_object(folder: Path) -> None:
    write(folder, GOOD.replace("by failed", "by slow"))
    write(folder, "cases: []", "bad_test.yaml")
    done = run(".", "--json")
    told = json.loads(done.stdout)
    assert (told["passed"], told["failed"]) == (0, 1)
    (case,) = told["cases"]
    assert (case["file"], case["line"], case["name"], case["passed"]) == (
        "policies_test.yaml",
        3,
        "failures are kept",
        False,
    )
    (failure,) = case["failures"]
    assert failure["differences"] == [{"what": "by", "expected": "slow", "got": "failed"}]
    assert [vote["policy"] for vote in failure["votes"]] == ["failed", "slow"]
    assert told["coverage"][1] == {"config": "policies.yaml", "policy": "slow", "fired": 0, "decided": 0}
    assert any(problem.startswith("bad_test.yaml") for problem in told["problems"])


def test_the_last_line_counts_files_that_could_not_be_read(folder: Path) -> None:
    write(folder, GOOD)
    write(folder, "cases: []", "bad_test.yaml")
    done = run(".")
    assert done.exit_code == 2
    last = done.stdout.splitlines()[-1]
    assert last.startswith("1 case: 1 passed in ")
    assert last.endswith("; 1 file could not be read")
    assert run("bad_test.yaml").stdout.splitlines()[-1].startswith("0 cases: 0 passed in ")


def test_junit_has_a_suite_a_file_and_a_case_a_case(folder: Path) -> None:
    write(folder, TESTS.replace("failures are kept #", '"failures \\e[31m<are>\\uffff kept" #'))
    run(".", "--junit", "out.xml")
    root = ET.parse(folder / "out.xml").getroot()
    assert root.tag == "testsuites"
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures")) == ("2", "2")
    first, _ = suite
    assert first.get("name") == "failures \\x1b[31m<are>? kept"
    assert (first.get("file"), first.get("line")) == ("policies_test.yaml", "4")
    (failed,) = first
    assert "expected kept, got dropped" in (failed.text or "")


def test_update_writes_what_is_and_keeps_comments_and_layout(folder: Path) -> None:
    path = write(folder, TESTS)
    done = run(".", "--update")
    assert path.read_text(encoding="utf-8") == UPDATED
    assert done.exit_code == 0, done.output
    assert "policies_test.yaml: 5 updated" in done.output
    again = run(".", "--update")
    assert again.exit_code == 0
    assert "updated" not in again.output


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_update_writes_expectations_where_there_are_none(folder: Path, newline: str) -> None:
    text = """\
config: policies.yaml
cases:
  - name: new # one
    given:
      - pod web-0: 2 failures by NodeAffinity, then success # and so on
      - trace: 'it: is'
        spans: [{name: GET}]

  - name: done
    given: [pod a: success]
    expect: {dropped: 1}
"""
    path = folder / "new_test.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", newline).encode())
    assert run("new_test.yaml").exit_code == 2
    done = run("new_test.yaml", "--update")
    assert done.exit_code == 0, done.output
    told = path.read_bytes().decode("utf-8-sig")
    assert told == text.replace(
        "GET}]\n",
        "GET}]\n"
        "    expect:\n"
        "      pod web-0 attempts 1-2: kept by failed\n"
        "      pod web-0 attempt 3: dropped\n"
        '      "trace it: is": dropped\n',
    ).replace("\n", newline)
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")


def test_update_says_what_it_can_not_write(folder: Path) -> None:
    text = GOOD.replace("{pod web-0: kept by failed}", "[{at: 1ms, pod web-0: kept}, {pod web-9: kept}]")
    path = write(folder, text)
    done = run(".", "--update")
    assert done.exit_code == 1
    assert path.read_text(encoding="utf-8") == text
    assert "pod web-0: not updated: at that time it has not arrived yet" in done.stderr
    assert "pod web-9: not updated: no such Pod came" in done.stderr


def test_nothing_that_a_file_says_moves_the_cursor(folder: Path) -> None:
    write(folder, GOOD.replace("name: failures", r'name: "\e[2J failures').replace("kept\n", 'kept"\n', 1))
    done = run(".", "-k", "failures")
    assert done.exit_code == 0
    write(folder, GOOD.replace("web-0", r'"web\e[2J"').replace("by failed", "by slow"))
    for arguments in ((".",), (".", "--coverage"), (".", "--fail-on-uncovered")):
        assert "\x1b" not in run(*arguments).output


def test_watch_runs_again_when_a_file_changes_and_ends_with_ctrl_c(folder: Path) -> None:
    write(folder, GOOD)
    out, inside = os.pipe()
    with Path(os.devnull).open() as nothing:
        files = (nothing.fileno(), inside, inside)
        fork = Fork(["podtrail", "test", ".", "--watch"], folder, os.environ, files)
    os.close(inside)
    patience = threading.Timer(PATIENCE, fork.kill)
    patience.start()
    with os.fdopen(out, encoding="utf-8") as said:

        def until(text: str) -> None:
            while text not in (line := said.readline()):
                assert line, f"ended before it said {text!r}"

        until("watching 2 files")
        write(folder, CONFIG.replace("[Unschedulable]", "[Error]"), "policies.yaml")
        until("expected kept, got dropped")
        until("watching 2 files")
        write(folder, "config: [", "policies.yaml")
        until("is not YAML")
        until("watching 2 files")
        write(folder, CONFIG, "policies.yaml")
        until("1 case: 1 passed")
        until("watching 2 files")
        fork.send_signal(signal.SIGINT)
        assert fork.wait(PATIENCE) == 0
    patience.cancel()
