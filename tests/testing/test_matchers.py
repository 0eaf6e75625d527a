"""Assertions on runs: true ones are silent, others say what differs and how the policies voted."""

from collections.abc import Callable
from typing import Any

import pytest

from podtrail.config import ConfigError
from podtrail.otlp import write_request
from podtrail.testing import Run, assert_dropped, assert_kept, assert_linked, given, replay
from podtrail.testing.attempts import MadeAttempt, no_room

CONFIG: dict[str, Any] = {
    "receivers": {"otlp": {"protocols": {"grpc": None}}},
    "processors": {
        "tail_sampling": {
            "decision_wait": "1s",
            "policies": [
                {"name": "failed", "type": "scheduling_result", "scheduling_result": {"results": ["Unschedulable"]}}
            ],
        },
        "link_stitching": None,
    },
    "exporters": {"debug": None},
    "service": {
        "pipelines": {
            "traces": {
                "receivers": ["otlp"],
                "processors": ["tail_sampling", "link_stitching"],
                "exporters": ["debug"],
            }
        }
    },
}
WEB = "pod web-0: 2 failed attempts by NodeResourcesFit, then success"


@pytest.fixture(name="run", scope="module")
def _run() -> Run:
    return replay(CONFIG, given(WEB, {"pod": "api", "namespace": "shop", "attempts": "success"}, {"trace x": {}}))


def test_what_is_so_is_asserted_in_silence(run: Run) -> None:
    assert_kept(run, "web-0 attempts 1-2", by="failed", because="Unschedulable", spans=4)
    assert_kept(run, "pod web-0 attempt 2", number=2)
    assert_linked(run, "web-0 attempt 2", "attempt 1", type="previous-attempt", resolved=True)
    assert_dropped(run, "web-0 last attempt", by="")
    assert_dropped(run, "shop/api", because="no policy said yes")
    assert_dropped(run, "trace x")


@pytest.mark.parametrize("whom", [lambda made: made, lambda made: made.trace_id, lambda made: made.trace_id.hex()])
def test_traces_are_known_by_attempt_and_by_id(whom: Callable[[MadeAttempt], Any]) -> None:
    made = no_room()
    run = replay(CONFIG, [(made.start, write_request(made.groups()))])
    assert_kept(run, whom(made), by="failed")


def test_what_is_not_so_says_what_differs_and_how_the_policies_voted(run: Run) -> None:
    with pytest.raises(AssertionError) as raised:
        assert_kept(run, "web-0", by="failed")
    lines = str(raised.value).splitlines()
    assert lines[0] == "pod web-0 attempt 3: expected kept, got dropped (no policy said yes)"
    assert [line.split() for line in lines[1:3]] == [
        ["decision", "expected", "kept"],
        ["got", "dropped", "(no", "policy", "said", "yes)"],
    ]
    assert lines[-1].strip() == "failed  no    scheduler.result=Success, not Unschedulable"
    with pytest.raises(AssertionError, match=r"expected links creation to trace x, got previous-attempt to pod web-0"):
        assert_linked(run, "web-0 attempt 2", "trace x", type="creation")


def test_who_did_not_come_is_no_success(run: Run) -> None:
    with pytest.raises(AssertionError, match=r"pod web-1: expected dropped: no such Pod came; did you mean web-0\?"):
        assert_dropped(run, "web-1")
    with pytest.raises(AssertionError, match="no such trace came"):
        assert_kept(run, bytes(16))


def test_what_is_given_wrongly_is_named_with_its_place() -> None:
    with pytest.raises(ConfigError, match="given::0: an outcome can't be 'sucess'"):
        given("pod web-0: sucess")
