"""Assertions for tests in Python; their messages show how the policies voted.

    run = replay("pipeline.yaml", given("pod web-0: 2 failed attempts by NodeResourcesFit, then success"))
    assert_kept(run, "pod web-0 attempt 1", by="failed", because="Unschedulable")
    assert_dropped(run, "pod web-0 last attempt")
    assert_linked(run, "pod web-0 attempt 2", "attempt 1", type="previous-attempt")

Whom an assertion is about is said as in test files (`pod shop/web-0 attempt 2`, `trace 4bf92f35…`), by a Pod's name
(`web-0`, `shop/web-0`), by a trace id (32 hex digits, or 16 bytes), or by an attempt that `podtrail.testing.attempts`
made. A Pod stands for all of its attempts.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from podtrail.config import ConfigError
from podtrail.config.nodes import MapNode
from podtrail.config.reader import read_yaml
from podtrail.otlp import attempt_of, write_request
from podtrail.replay.replayer import Run
from podtrail.testing.attempts import MadeAttempt
from podtrail.testing.cases.case_file_reader import CaseFileReader
from podtrail.testing.cases.case_run import CaseRun, SeenTrace, UnknownSubject
from podtrail.testing.cases.expectations import WantedTrace
from podtrail.testing.cases.failure_text import difference_lines, vote_lines
from podtrail.testing.cases.given import read_given
from podtrail.testing.cases.judging import differences, headline
from podtrail.testing.cases.models import LinkModel
from podtrail.testing.cases.outcome_text import Expected, State
from podtrail.testing.cases.subjects import Subject, is_subject, read_subject

_HEX: Final = re.compile(r"[0-9a-fA-F]{32}")

Whom = str | bytes | MadeAttempt


def given(*items: str | Mapping[str, Any]) -> list[tuple[int, bytes]]:
    """Return a recording for `replay` of what test files write under `given`: text, or mappings as YAML has them.

    Raises:
        ConfigError: an item can't be read.
    """
    root = read_yaml(json.dumps({"given": items}, ensure_ascii=False), "given")
    assert isinstance(root, MapNode)
    reading = CaseFileReader(root, Path("given"))
    found = read_given(reading, root.get("given"), ("given",))
    if reading.problems:
        raise ConfigError(reading.problems)
    _, arrivals = found.arrivals()
    return [(arrival, write_request(intake.groups)) for arrival, intake in arrivals]


def assert_kept(
    run: Run,
    whom: Whom,
    *,
    by: str | None = None,
    because: str | None = None,
    number: int | None = None,
    spans: int | None = None,
) -> None:
    """Assert that traces were kept.

    Args:
        run: what `replay` returned.
        whom: a Pod, an attempt or a trace.
        by: the policy that decided.
        because: a part of its reason, or a regular expression between slashes.
        number: the attempt's number, as link_stitching writes it.
        spans: how many spans of it left the pipeline.
    """
    __tracebackhide__ = True
    _assert(run, whom, "kept", WantedTrace(Expected("kept", by, because), number, spans))


def assert_dropped(run: Run, whom: Whom, *, by: str | None = None, because: str | None = None) -> None:
    """Assert that traces were not kept; `by` names the policy that dropped them ("": none said yes)."""
    __tracebackhide__ = True
    _assert(run, whom, "dropped", WantedTrace(Expected("dropped", by, because)))


def assert_linked(run: Run, whom: Whom, to: str, *, type: str | None = None, resolved: bool | None = None) -> None:
    """Assert that kept traces have a link to another: `attempt 1` of the same Pod, `pod NAME attempt N`, a trace."""
    __tracebackhide__ = True
    link = LinkModel(type=type, to=to, resolved=resolved)
    _assert(run, whom, "kept", WantedTrace(Expected("kept"), links=(link,)))


def _assert(run: Run, whom: Whom, state: State, wanted: WantedTrace) -> None:
    __tracebackhide__ = True
    trial, subject = _trial(run), _subject(whom)
    try:
        found = trial.find(subject)
    except UnknownSubject as error:
        raise AssertionError(f"{subject}: expected {state}: {error}") from None
    told: list[str] = []
    for seen in found:
        now = seen.at(None, sampled=trial.sampled)
        differing = differences(wanted, seen, now, trial)
        if not differing:
            continue
        told.append(headline(trial.name_of(seen.trace_id), differing))
        told += difference_lines(differing)
        if now.verdict is not None:
            told += ["    how the policies voted:", *vote_lines(now.verdict.explained())]
    if told:
        raise AssertionError("\n".join(told))


def _subject(whom: Whom) -> Subject:
    match whom:
        case MadeAttempt():
            return Subject("trace", whom.trace_id.hex())
        case bytes():
            return Subject("trace", whom.hex())
        case str() if _HEX.fullmatch(whom):
            return Subject("trace", whom)
        case _:
            return read_subject(whom if is_subject(whom) else f"pod {whom}", attempts=True)


def _trial(run: Run) -> CaseRun:
    """Return a run as test files see one: what became of each trace."""
    traces: dict[bytes, SeenTrace] = {}
    for verdict in run.verdicts:
        seen = traces.setdefault(verdict.trace_id, SeenTrace(verdict.trace_id, verdict.arrived))
        seen.attempt = seen.attempt or attempt_of(verdict.groups)
        seen.verdicts.append(verdict)
    left: dict[bytes, dict[bytes, bytes]] = {}
    for spans in run.exported.values():
        for exported in spans:  # the same span may have gone to several exporters
            left.setdefault(exported.span.trace_id, {})[exported.span.span_id] = exported.raw
    for trace_id, raws in left.items():
        seen = traces.setdefault(trace_id, SeenTrace(trace_id, 0))
        seen.left = list(raws.values())
    return CaseRun(0, traces, {})
