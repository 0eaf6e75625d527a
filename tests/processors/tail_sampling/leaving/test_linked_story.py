"""The story of a Pod arrives whole: its attempts, and what a real API server (v1.37.1) recorded of its requests."""

from pathlib import Path

from podtrail.otlp import write_request
from podtrail.recording import Damage, read_recording
from podtrail.testing import Run, replay
from podtrail.testing.attempts import MS, MadeAttempt, no_room

REQUESTS = Path(__file__).parents[3] / "data" / "recordings" / "pod-requests.otlp.jsonl"
UID = "613b0736-a47e-4334-bdb5-7dd3c2d13d38"
SECOND = 1_000 * MS
CREATED = 1_795_259_525_983_472_564
CREATION, REFUSED, BINDING, BOUND, ANOTHER = (
    "3d220c2654b60c87f0cfbc96f0561eb9",
    "a96258637e88e4c67d5be2bffac36bcc",
    "dbaadbe0531d3a53d5a680861f2050cd",
    "93622676751c3856309c476ba8174c40",
    "79ff202b109c049ad9167fe3555d363e",
)
CONFIG = """
receivers: {otlp: {protocols: {grpc: {}}}}
processors:
  tail_sampling:
    decision_wait: 2s
    policies:
      - {name: slow, type: slow_attempt, slow_attempt: {threshold: 500ms}}
    linked_traces: {keep: KEEP}
  link_stitching: {reorder_wait: 1s}
exporters: {debug: {}}
service:
  pipelines:
    traces: {receivers: [otlp], processors: [tail_sampling, link_stitching], exporters: [debug]}
"""

# No nodes at first; then one, on which it goes, slowly. The name is that of the recorded Pod.
FAILED = no_room(uid=UID, name="early-bird", number=1, start=CREATED + 2 * MS, duration=MS)
WENT = MadeAttempt(uid=UID, name="early-bird", number=2, start=CREATED + SECOND, duration=600 * MS)


def told(keep: str) -> Run:
    recorded = [one for one in read_recording(REQUESTS) if not isinstance(one, Damage)]
    arrivals = [(one.arrival, write_request(one.intake.groups)) for one in recorded]
    arrivals += [(one.start + one.duration, write_request(one.groups())) for one in (FAILED, WENT)]
    return replay(CONFIG.replace("KEEP", keep), sorted(arrivals))


def test_the_requests_for_a_pod_and_its_failed_attempt_come_with_the_slow_one() -> None:
    run = told("true")
    attempts = {FAILED.trace_id.hex(), WENT.trace_id.hex()}
    assert set(run.kept) == {CREATION, REFUSED, BINDING, BOUND, *attempts}
    assert ANOTHER in {decision["traceId"] for decision in run.decisions if decision["decision"] == "not_sampled"}


def test_links_to_a_rescued_attempt_are_resolved() -> None:
    (root,) = [one.span for one in told("true").exported["debug"] if one.span.span_id == WENT.root_id]
    (link,) = [link for link in root.links if link.trace_id == FAILED.trace_id]
    assert link.attributes["podtrail.link.resolved"] is True
    assert root.attributes["podtrail.attempt.number"] == 2


def test_without_it_only_the_slow_one_comes() -> None:
    assert set(told("false").kept) == {WENT.trace_id.hex()}
