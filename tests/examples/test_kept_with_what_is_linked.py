"""What a user sends to the configurations that are shipped: a creation stays with the attempt that is kept."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from podtrail.otlp import Group, encode_span, frame, resource_header, scope_header, write_request
from podtrail.testing import replay
from podtrail.testing.attempts import MadeAttempt, no_room

ROOT = Path(__file__).parents[2]
SECOND = 1_000_000_000
START = 1_790_000_000 * SECOND
POD = "1f3c0a52-0000-4000-8000-000000000001"
CREATION = bytes.fromhex("4bf92f3577b34da6a3ce929d0e0e4736")
OTHER = bytes.fromhex("5bf92f3577b34da6a3ce929d0e0e4737")
FILES = ("pipeline.yaml", "examples/sidecar.yaml", "examples/stock-scheduler.yaml", "docker/sidecar.yaml")
OTHERS = ("docker/kubernetes/stock/host/config.yaml", "examples/policies/incident.yaml")
DEFAULT = "examples/policies/platform-default.yaml"
MANIFEST = "docker/kubernetes/stock/deployment.yaml"


def settings_of(name: str) -> dict[str, Any]:
    """Return a configuration; where it stands in a manifest or a document, the one in there."""
    text = (ROOT / name).read_text(encoding="utf-8")
    if name == MANIFEST:
        data = next(one["data"] for one in yaml.safe_load_all(text) if "config.yaml" in one.get("data", ()))
        text = data["config.yaml"]
    if name.endswith(".md"):
        text = text.split("```yaml\n")[1].partition("```")[0]
    settings: dict[str, Any] = yaml.safe_load(text)
    return settings


def creation(
    at: int, *, name: str = "web-0", trace_id: bytes = CREATION, parent: bytes = b"", took: int = SECOND // 100
) -> list[Group]:
    """Return what the API server (v1.37) tells of the request that created a Pod, and no more than matters here."""
    audit = {"audit-id": f"4c2612c7-1e83-42c4-849b-{trace_id.hex()[-12:]}"}
    path = {"url.path": "/api/v1/namespaces/default/pods", "http.request.method": "POST"}
    key = {"key": f"/pods/default/{name}", "type": "*core.Pod"}
    spans = [
        encode_span(
            trace_id=trace_id,
            span_id=b"request!",
            parent_span_id=parent,
            kind=2,
            name="POST /api/v1/namespaces/{:namespace}/pods",
            start=at,
            end=at + took,
            attributes=audit | path,
        ),
        encode_span(
            trace_id=trace_id,
            span_id=b"to etcd!",
            parent_span_id=b"request!",
            name="Create etcd3",
            start=at + took // 4,
            end=at + took // 2,
            attributes=audit | key,
        ),
    ]
    header = resource_header({"service.name": "apiserver"})
    return [Group(header, scope_header("apiserver"), trace_id, frame(spans), len(spans))]


def attempt(at: int, **more: Any) -> MadeAttempt:
    return no_room(uid=POD, number=1, start=at, stitched=False, **more)


def kept_of(name: str, arrivals: Sequence[tuple[int, Sequence[Group]]], monkeypatch: pytest.MonkeyPatch) -> set[str]:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://backend.example:4317")
    monkeypatch.setenv("NAMESPACE", "payments")
    settings = settings_of(name)
    return set(replay(settings, sorted((at, write_request(groups)) for at, groups in arrivals)).kept)


EACH = pytest.mark.parametrize("name", ["README.md", *FILES, *OTHERS, MANIFEST, DEFAULT])


@EACH
@pytest.mark.parametrize("parent", [b"", b"client!!"], ids=["whole", "its client sends nothing"])
@pytest.mark.parametrize(("held", "held_attempt"), [(0, 0), (5, 0), (0, 5)], ids=["at once", "late", "early"])
def test_a_creation_one_second_before_a_failed_attempt_is_kept_with_it(
    name: str, parent: bytes, held: int, held_attempt: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long a client holds the one or the other: OpenTelemetry's do so for 5 s, and so do all of Kubernetes."""
    failed = attempt(START + SECOND)
    ended = failed.start + failed.duration
    arrivals = [
        (START + SECOND // 100 + held * SECOND, creation(START, parent=parent)),
        (START + SECOND // 100, creation(START, name="other", trace_id=OTHER)),
        (ended + held_attempt * SECOND, failed.groups()),
    ]
    kept = kept_of(name, arrivals, monkeypatch)
    assert kept >= {CREATION.hex(), failed.trace_id.hex()}
    assert name == DEFAULT or OTHER.hex() not in kept, "that one keeps as much of the rest as there is room for"


@pytest.mark.parametrize("name", ["README.md", *FILES[1:], *OTHERS[:1], MANIFEST])
def test_a_creation_is_kept_with_an_attempt_that_takes_minutes_to_fail(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Binding may wait for a volume; the pace of pipeline.yaml is another."""
    failed = attempt(START + SECOND, duration=280 * SECOND)
    arrivals = [
        (START + SECOND // 100, creation(START)),
        (failed.start + failed.duration + 4 * SECOND, failed.groups()),
    ]
    assert kept_of(name, arrivals, monkeypatch) == {CREATION.hex(), failed.trace_id.hex()}
