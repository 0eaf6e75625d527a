"""The pytest plugin, in runs of pytest: one in a process of its own, as a user starts it, the others in this one."""

from pathlib import Path

import pytest

from podtrail.testing.cases import CaseResult, Coverage, read_suite, run_case

pytest_plugins = ("pytester",)

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "tests" / "data" / "recordings" / "scheduler.otlp.gz"
CASES = """\
config: {processors: {tail_sampling: {policies: [{name: slow, type: slow_attempt, slow_attempt: {threshold: 1s}}]}}}
cases:
  - name: slow attempts are kept
    given: [pod web-0: success in 2s]
    expect: {pod web-0: kept by slow}
  - name: quick ones, too
    given: [pod web-0: success]
    expect: {pod web-0: kept by slow}
"""


@pytest.fixture(autouse=True)
def _cases(pytester: pytest.Pytester) -> None:
    (pytester.path / "policies_test.yaml").write_text(CASES, encoding="utf-8")


def test_test_files_are_not_collected_unless_somebody_asks(pytester: pytest.Pytester) -> None:
    assert pytester.runpytest_inprocess().ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_file_that_is_named_is_collected(pytester: pytest.Pytester) -> None:
    pytester.runpytest_inprocess("policies_test.yaml").assert_outcomes(passed=1, failed=1)


def test_each_case_is_an_item_whose_failure_shows_the_votes(pytester: pytest.Pytester) -> None:
    done = pytester.runpytest_subprocess("-o", "podtrail_tests=true")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(
        [
            "policies_test.yaml:8:14: quick ones, too: pod web-0: expected kept, got dropped (no policy said yes)",
            "    how the policies voted on pod web-0:",
            "      slow  no    SchedulePod took 9 ms, not longer than 1s",
            "FAILED policies_test.yaml::quick ones, too*",
        ]
    )
    assert "Traceback" not in done.stdout.str()


def test_a_case_is_chosen_by_its_name(pytester: pytest.Pytester) -> None:
    pytester.runpytest_inprocess("policies_test.yaml", "-k", "slow").assert_outcomes(passed=1, deselected=1)


def test_a_file_that_is_wrong_is_an_error_with_its_place(pytester: pytest.Pytester) -> None:
    wrong = CASES.replace("success in 2s", "sucess")
    (pytester.path / "policies_test.yaml").write_text(wrong, encoding="utf-8")
    done = pytester.runpytest_inprocess("policies_test.yaml")
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*policies_test.yaml:4:24: *an outcome can't be 'sucess'", "*did you mean success?*"])


def test_replay_finds_files_beside_the_test_and_takes_processors_alone(pytester: pytest.Pytester) -> None:
    folder = pytester.path / "below"
    folder.mkdir()
    policies = "{name: failed, type: scheduling_result, scheduling_result: {results: [Unschedulable]}}"
    (folder / "policies.yaml").write_text(f"processors: {{tail_sampling: {{policies: [{policies}]}}}}\n")
    (folder / "week.otlp.gz").write_bytes(RECORDING.read_bytes())
    (folder / "test_below.py").write_text(
        """
from podtrail.testing import assert_kept, given

def test_beside(podtrail_replay):
    for recording in ("week.otlp.gz", ["week.otlp.gz"]):
        assert_kept(podtrail_replay("policies.yaml", recording), "huge-0", by="failed")

def test_given(podtrail_replay):
    assert_kept(podtrail_replay("policies.yaml", given("pod web-0: 1 failed attempt by NodeResourcesFit")), "web-0")
"""
    )
    pytester.runpytest_inprocess("below").assert_outcomes(passed=2)


def test_a_test_runs_once_for_each_recording_in_a_folder(pytester: pytest.Pytester) -> None:
    folder = pytester.path / "weeks"
    folder.mkdir()
    for name in ("monday.otlp.gz", "tuesday.otlp.gz"):
        (folder / name).write_bytes(RECORDING.read_bytes())
    (folder / "README.md").write_text("no recording", encoding="utf-8")
    pytester.makepyfile(
        f"""
        import pytest
        from podtrail.testing import assert_kept

        @pytest.mark.podtrail_recordings("weeks")
        def test_failures_are_kept(podtrail_recording, podtrail_replay):
            run = podtrail_replay({str(ROOT / "pipeline.yaml")!r}, podtrail_recording)
            assert_kept(run, "huge-0", by="failed")
        """
    )
    done = pytester.runpytest_inprocess("-v")
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["*monday.otlp.gz* PASSED*", "*tuesday.otlp.gz* PASSED*"])


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("", "podtrail_recording needs @pytest.mark.podtrail_recordings(folder)"),
        ('@pytest.mark.podtrail_recordings("nowhere")', "*nowhere has no recording*"),
        ("@pytest.mark.podtrail_recordings()", "*takes one folder"),
    ],
)
def test_without_recordings_it_does_not_pass_in_silence(pytester: pytest.Pytester, marker: str, message: str) -> None:
    pytester.makepyfile(f"import pytest\n\n{marker}\ndef test_nothing(podtrail_recording):\n    pass\n")
    done = pytester.runpytest_inprocess()
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines([message])


def test_every_ready_policy_file_has_tests_that_pass_and_in_which_each_policy_says_yes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = ROOT / "examples" / "policies"
    monkeypatch.syspath_prepend(folder)  # Python finds the policies in Python
    coverage, results = Coverage(), list[CaseResult]()
    for path in sorted(folder.glob("*_test.yaml")):
        suite = read_suite(path)
        results += (of_suite := [run_case(suite, case) for case in suite.cases])
        coverage.add(of_suite)
    assert [failure.headline for result in results for failure in result.failures] == []
    assert [(row.config, row.policy) for row in coverage.uncovered] == []
    tested = {path.name.replace("_test", "") for path in folder.glob("*_test.yaml")}
    assert tested == {path.name for path in folder.glob("*.yaml") if not path.name.endswith("_test.yaml")}
