"""Test files: what is given becomes traces, what is expected is held against what became of them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtrail.config import ConfigError
from podtrail.otlp import SpanView, attempt_of, split
from podtrail.testing.attempts.planned import PlannedAttempts, PlannedRefusal, made
from podtrail.testing.cases import CaseResult, read_suite, run_case

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
CONFIG = """\
config:
  processors:
    tail_sampling:
      decision_wait: 10s
      policies:
        - {name: failed, type: scheduling_result, scheduling_result: {results: [Unschedulable, Error]}}
        - {name: slow, type: slow_attempt, slow_attempt: {threshold: 1s}}
        - {name: error, type: status_code, status_code: {status_codes: [ERROR]}}
    link_stitching:
"""
WEB = "    given:\n      - pod web-0: 2 failed attempts by NodeResourcesFit, then success in 40ms\n"

Write = Callable[[str], Path]


@pytest.fixture(name="write")
def _write(tmp_path: Path) -> Write:
    """Write cases into a test file with a configuration of three policies."""

    def write(cases: str) -> Path:
        path = tmp_path / "some_test.yaml"
        path.write_text(cases if cases.startswith("config") else f"{CONFIG}cases:\n{cases}", encoding="utf-8")
        return path

    return write


def run(path: Path) -> list[CaseResult]:
    suite = read_suite(path)
    return [run_case(suite, case) for case in suite.cases]


def told(path: Path) -> list[str]:
    """Return the headlines of failures, without the file's name."""
    return [failure.headline.removeprefix(f"{path}:") for result in run(path) for failure in result.failures]


def refused(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        read_suite(path)
    lines = [line.strip() for line in str(raised.value).splitlines() if " | " not in line]
    return [line.removeprefix(f"{path}:") for line in lines]


def test_what_is_as_expected_passes(write: Write) -> None:
    path = write(f"""\
  - name: web
{WEB}
    expect:
      pod web-0 attempts 1-2: sampled by failed because scheduler.result=Unschedulable
      pod web-0 attempt 2:
        decision: Sampled
        because: /result=Un\\w+$/
        number: 2
        spans: 4
        links: [{{type: previous-attempt, to: attempt 1, resolved: true}}]
      pod web-0 attempt 1: {{decision: kept, number: 1, links: [{{type: next-attempt, to: attempt 2}}]}}
      pod web-0 last attempt: not_sampled because no policy said yes
      sampled: 2
      dropped: 1
      pending: 0
""")
    assert told(path) == []


def test_what_is_not_tells_place_case_expected_got_and_votes(write: Write) -> None:
    path = write(f"""\
  - name: web
{WEB}
    expect:
      pod default/web-0: kept by failed
""")
    (result,) = run(path)
    (failure,) = result.failures
    assert failure.headline == (
        f"{path}:16:7: web: pod web-0 attempt 3: expected kept, got dropped (no policy said yes)"
    )
    assert [difference.what for difference in failure.differences] == ["decision", "by"]
    votes = {vote.policy: (vote.decision, vote.why) for vote in failure.votes}
    assert votes["failed"] == ("not_sampled", "scheduler.result=Success, not Error or Unschedulable")
    assert "SchedulePod took 40 ms, not longer than 1s" in votes["slow"][1]


@pytest.mark.parametrize(
    ("expectation", "what"),
    [
        ("pod web-0 attempt 1: kept by slow", "expected by slow, got failed"),
        ("pod web-0 attempt 1: kept because cpu", "expected because cpu, got scheduler.result=Unschedulable"),
        ("pod web-0 attempt 1: {decision: kept, number: 2}", "expected number 2, got 1"),
        ("pod web-0 attempt 1: {decision: kept, spans: 9}", "expected spans 9, got 4"),
        ("pod web-0 attempt 2: {decision: kept, links: []}", "expected links none, got previous-attempt to"),
        (
            "pod web-0 attempt 2: {decision: kept, links: [{type: creation}]}",
            "expected links creation, got previous-attempt to pod web-0 attempt 1",
        ),
        ("pod web-0 attempt 3: {decision: dropped, by: failed}", "expected by failed, got no policy"),
        ("pod web-0 attempt 4: kept", "it has 3 attempts only"),
        ("pod web-1: kept", "no such Pod came; did you mean web-0?"),
        ("trace x: kept", "no such trace came"),
        ("kept: 3", "expected 3 traces kept, got 2"),
    ],
)
def test_every_part_of_an_expectation_is_held_against_what_came(write: Write, expectation: str, what: str) -> None:
    (line,) = told(write(f"  - name: web\n{WEB}    expect:\n      {expectation}\n"))
    assert what in line


def test_steps_tell_what_is_so_at_a_time(write: Write) -> None:
    path = write("""\
  - name: in time
    given:
      - pod web-0: failure in 1s at 5s
    expect:
      - {at: 14999ms, pod web-0: pending, pending: 1}
      - {at: 16s, pod web-0: kept, kept: 1}
      - {at: 16s, pod web-0: pending}
      - {at: 5s, pod web-0: pending}
""")
    assert told(path) == [
        "17:19: in time: pod web-0 at 16s: expected pending, got kept by failed (scheduler.result=Unschedulable)",
        "18:18: in time: pod web-0 at 5s: expected pending, got nothing: it has not arrived yet",
    ]


def test_traces_are_given_span_by_span(write: Write) -> None:
    path = write("""\
  - name: requests
    given:
      - trace: refused
        spans:
          - {name: POST, kind: server, duration: 3ms, attributes: {code: 422}}
          - {name: webhook, parent: POST, start: 1ms, duration: 1ms, status: error, message: no, links: [pod web-0]}
      - trace fine: {name: GET, duration: 3ms}
      - trace two: [{name: GET}, {name: etcd}]
      - {pod: web-0, uid: a-b-c, attempts: [{result: Error, took: 2s, attributes: {scheduler.attempts: 7}}, success]}
    expect:
      trace refused: {decision: kept, by: error, spans: 2, links: [{to: pod web-0 attempt 1}]}
      trace fine: dropped
      trace two: dropped
      pod web-0 attempt 1: kept by failed
""")
    assert told(path) == []


def test_recordings_are_given_by_path_and_known_by_pod_or_trace_id(write: Write, tmp_path: Path) -> None:
    (tmp_path / "scheduler.otlp.gz").write_bytes((RECORDINGS / "scheduler.otlp.gz").read_bytes())
    path = write("""\
  - name: recorded
    given: {recording: scheduler.otlp.gz, pod web-9: failure in 1s}
    expect:
      pod huge-0: kept by failed
      pod web-9: kept by failed
      pod costly-0: kept by slow
      trace ffff: kept
""")
    assert ["no such trace came" in line for line in told(path)] == [True]


def test_a_damaged_recording_fails_the_case_and_names_the_place(write: Write, tmp_path: Path) -> None:
    (tmp_path / "some.jsonl").write_text('{"resourceSpans": [\n', encoding="utf-8")
    path = write("  - name: broken\n    given: {recording: some.jsonl}\n    expect: {kept: 0}\n")
    (line,) = told(path)
    assert line.startswith("11:11: broken: the recording can't be used: ")
    assert "some.jsonl:1" in line


ONE = "  - {name: x, given: [pod a: success], expect: {kept: 1}}"
WRONG = {
    "  - {name: x, given: [pod a: sucess], expect: {kept: 1}}": (
        "11:30: cases::0::given::0::pod a: an outcome can't be 'sucess'",
        "did you mean success?",
    ),
    "  - {name: x, given: ['pod a: success in 4'], expect: {kept: 1}}": (
        "11:42: cases::0::given::0: '4' lacks a unit",
        "write for example 300ms",
    ),
    "  - {name: x, given: [pods a: success], expect: {kept: 1}}": ("'pods a' is neither a Pod", "write pod NAME"),
    "  - {name: x, given: [pod a: success], expect: {pod a: kepd}}": (
        "what is expected can't be 'kepd'",
        "did you mean kept?",
    ),
    "  - {name: x, given: [pod a: success], expect: {pod a: {by: x}}}": ("pod a::decision: is required", ""),
    "  - {name: x, given: [pod a: success], expect: {pod a: {decision: kept, because: /(/}}}": (
        "because: invalid regular expression '(': missing ): (",
        "write a part of the reason",
    ),
    "  - {name: x, given: [pod a: success], expect: [{at: 5, pod a: kept}]}": ("must be a time since", "write 30s"),
    "  - {name: x, given: [pod a: success], expect: [{at: 5s, pod a: {decision: kept, number: 1}}]}": (
        "number: is known when everything has left",
        "put it into a step without at",
    ),
    "  - {name: x, given: [pod a: success], expect: {keep: 1}}": ("unknown key 'keep'", "did you mean kept?"),
    "  - {name: x, given: [pod a: success], expect: {kept: some}}": ("must be how many traces", "write kept: 3"),
    "  - {name: x, given: [pod a: success]}": ("expects nothing", "--update"),
    "  - {name: x, expect: {kept: 1}}": ("must be a list of what arrives", "write - pod web-0"),
    "  - {given: [pod a: success], expect: {kept: 1}}": ("has no name", "- name:"),
    "  - {name: x, givn: 3, given: [pod a: success], expect: {kept: 1}}": ("unknown key 'givn'", "did you mean given?"),
    "  - {name: x, given: [pod a: [{result: Sucess}]], expect: {kept: 1}}": (
        "result: must be one of Success, Unschedulable, Error, not 'Sucess'",
        "did you mean Success?",
    ),
    "  - {name: x, given: [pod a: success, pod a in default: success], expect: {kept: 1}}": (
        "pod default/a is given twice",
        "parted by",
    ),
    "  - {name: x, given: [recording: no.otlp], expect: {kept: 1}}": ("there is no file", "relative to this file"),
    "  - {name: x, given: [trace: t, spans: [{parent: wrk}]], expect: {kept: 1}}": ("is neither a Pod, a trace", ""),
    "  - {name: x, given: [{trace: t, spans: [{name: work}, {parent: wrk}]}], expect: {kept: 1}}": (
        "trace t has no span 'wrk'",
        "did you mean work?",
    ),
    "  - {name: x, given: [{trace: t, spans: [{links: [pod b]}]}], expect: {kept: 1}}": (
        "'pod b' leads nowhere",
        "name",
    ),
    "  - {name: x, given: [trace t: []], expect: {kept: 1}}": ("must have spans", ""),
    "  - {name: x, given: [trace t: {duration: 3}], expect: {kept: 1}}": ("3 without a unit is 3 nanoseconds", "3ms?"),
    "  - {name: x, given: [{}], expect: {kept: 1}}": ("must be a Pod with its attempts", ""),
    "  - {name: x, given: [pod a: success], expect: {at: 1s}}": (
        "must be a map of what is expected",
        "pod web-0: kept",
    ),
    "  - {name: x, given: [pod a: [{attributes: {n: 9223372036854775808}}]], expect: {kept: 1}}": (
        "beyond 64 bits",
        "",
    ),
    "  - {name: x, given: [pod a: 1000 successes every 8000h], expect: {kept: 1}}": (
        "longer than 10 years",
        "shorten",
    ),
    f"{ONE}\n{ONE}": (
        "the name is given twice, first at",
        "name it",
    ),
}


@pytest.mark.parametrize("cases", WRONG)
def test_a_mistake_is_named_with_its_place_and_what_would_be_right(write: Write, cases: str) -> None:
    message, hint = WRONG[cases]
    report = refused(write(cases + "\n"))
    assert any(message in line for line in report), report
    assert any(hint in line for line in report), report
    assert all(line[0].isdigit() for line in report[::2]), report


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "config: no.yaml\ncases: [{name: x, given: [pod a: success], expect: {kept: 1}}]",
            "1:9: config: there is no file",
        ),
        ("config:\ncases: []", "cases: must be a list of cases"),
        (
            "config: {processors: {tail_smpling: }}\ncases: [{name: x, given: [pod a: success], expect: {kept: 1}}]",
            "tail_smpling",
        ),
        ("config: x.yaml", "cases: is required"),
    ],
)
def test_a_file_that_is_no_test_file_says_why(write: Write, text: str, message: str) -> None:
    assert any(message in line for line in refused(write(text + "\n")))


def test_one_of_several_pipelines_is_tested(write: Write) -> None:
    several = """\
config:
  receivers: {otlp: {protocols: {grpc: }}}
  exporters: {debug: }
  processors:
    tail_sampling/all: {decision_wait: 1s, policies: [{name: all, type: always_sample}]}
    tail_sampling/none:
      decision_wait: 1s
      policies: [{name: none, type: drop, drop: {drop_sub_policy: [{name: all, type: always_sample}]}}]
  service:
    pipelines:
      traces/all: {receivers: [otlp], processors: [tail_sampling/all], exporters: [debug]}
      traces/none: {receivers: [otlp], processors: [tail_sampling/none], exporters: [debug]}
cases: [{name: x, given: [pod a: success], expect: {pod a: dropped by none}}]
"""
    assert "the configuration has several pipelines" in refused(write(several))[0]
    assert "did you mean traces/none?" in refused(write(several + "pipeline: traces/nome\n"))[1]
    assert told(write(several + "pipeline: traces/none\n")) == []


def test_the_environment_of_a_configuration_is_given_by_the_file(write: Write, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(
        """\
receivers: {otlp: {protocols: {grpc: }}}
exporters: {debug: }
processors:
  tail_sampling:
    policies: [{name: slow, type: slow_attempt, slow_attempt: {threshold: "${env:SLOW}"}}]
service: {pipelines: {traces: {receivers: [otlp], processors: [tail_sampling], exporters: [debug]}}}
""",
        encoding="utf-8",
    )
    path = write(
        "config: own.yaml\nenvironment: {SLOW: 10ms}\n"
        "cases: [{name: x, given: [pod a: success in 20ms], expect: {pod a: kept by slow}}]\n"
    )
    assert told(path) == []
    assert read_suite(path).involved == {path, tmp_path / "own.yaml"}


def test_a_file_of_processors_alone_is_a_configuration(write: Write, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(
        "processors:\n  tail_sampling:\n    policies: [{name: all, type: always_sample}]\n", encoding="utf-8"
    )
    path = write("config: own.yaml\ncases: [{name: x, given: [pod a: success], expect: {pod a: kept by all}}]\n")
    assert told(path) == []


PLANS = st.lists(
    st.builds(
        PlannedAttempts,
        result=st.sampled_from(["Success", "Unschedulable", "Error"]),
        count=st.integers(1, 4),
        by=st.lists(
            st.builds(
                PlannedRefusal, st.sampled_from(["NodeAffinity", "Mine"]), st.one_of(st.none(), st.integers(0, 50))
            )
        ),
        took=st.integers(0, 10**10),
        after=st.one_of(st.none(), st.integers(0, 10**11)),
        every=st.one_of(st.none(), st.integers(0, 10**11)),
    ),
    min_size=1,
    max_size=3,
)


@given(PLANS)
def test_made_attempts_look_as_the_scheduler_writes_them(plans: list[PlannedAttempts]) -> None:
    attempts = [attempt for _, attempt in made(plans, "shop", "web-0", "uid", 10**18)]
    assert [attempt.number for attempt in attempts] == list(range(1, sum(plan.count for plan in plans) + 1))
    for attempt in attempts:
        groups = attempt.groups()
        read = attempt_of(groups)
        assert read is not None
        assert (read.namespace, read.name, read.pod_uid, read.declared) == ("shop", "web-0", "uid", attempt.number)
        assert read.failed == (attempt.result != "Success")
        roots = [SpanView(raw) for raw in split(groups[0].spans) if not SpanView(raw).parent_span_id]
        assert len(roots) == 1
        assert "podtrail.attempt.number" not in roots[0].attributes
        told_nodes = sum(len(no.nodes) for no in attempt.refusals)
        assert (
            told_nodes == attempt.nodes
            if attempt.refusals and attempt.result != "Success"
            else told_nodes < attempt.nodes
        )
    assert len({attempt.trace_id for attempt in attempts}) == len(attempts)
