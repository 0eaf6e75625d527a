"""What a user sends to the configurations that are shipped: a creation stays with the attempt that is kept.

They run as they stand, but for where they listen and write.
"""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

import pytest
import yaml

from podtrail.otlp import Group, encode_span, frame, resource_header, scope_header, write_request
from podtrail.testing import replay
from podtrail.testing.attempts import MadeAttempt, no_room

ROOT = Path(__file__).parents[2]
PODTRAIL = Path(sys.executable).parent / "podtrail"
SECOND = 1_000_000_000
START = 1_790_000_000 * SECOND
PATIENCE = 60.0
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


class Running(NamedTuple):
    """A podtrail, where it listens and what it writes."""

    process: "subprocess.Popen[str]"
    port: int
    kept: Path


def moved(name: str, folder: Path) -> dict[str, Any]:
    """Return a configuration with its servers on free ports, its output in a file, and without other sources."""
    settings = settings_of(name)
    assert "otlp" in settings["receivers"]
    (pipeline,) = settings["service"]["pipelines"].values()
    return {
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": "127.0.0.1:0"}}}},
        "processors": settings["processors"],
        "exporters": {"file": {"path": str(folder / "kept.jsonl")}},
        "service": {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {"traces": pipeline | {"receivers": ["otlp"], "exporters": ["file"]}},
        },
    }


def started(name: str, folder: Path, stack: ExitStack) -> Running:
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(json.dumps(moved(name, folder)), encoding="utf-8")
    command = [str(PODTRAIL), "run", "--config", "config.yaml"]
    process = stack.enter_context(subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True))
    stack.callback(process.kill)
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line)
        if "listening on" in line:
            port = int(line.partition("listening on 127.0.0.1:")[2].partition(" ")[0])
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return Running(process, port, folder / "kept.jsonl")
    raise AssertionError("".join(seen))


def send(port: int, groups: Sequence[Group]) -> None:
    headers = {"Content-Type": "application/x-protobuf"}
    request = Request(f"http://127.0.0.1:{port}/v1/traces", write_request(groups), headers)
    with urlopen(request, timeout=PATIENCE) as answer:
        assert answer.status == 200


def test_over_sockets_a_creation_one_second_before_a_failed_attempt_comes_out_with_it(tmp_path: Path) -> None:
    """All of them at once, for each has to wait until it decides."""
    with ExitStack() as stack:
        running = {name: started(name, tmp_path / name.replace("/", "-"), stack) for name in FILES}
        now = time.time_ns()
        for one in running.values():
            send(one.port, creation(now - SECOND // 100))
            send(one.port, creation(now - SECOND // 100, name="other", trace_id=OTHER))
        failed = attempt(now + SECOND - SECOND // 100)
        threading.Event().wait(max(0.0, 1 + (now - time.time_ns()) / SECOND))
        for one in running.values():
            send(one.port, failed.groups())
        for name, one in running.items():
            assert traces_in(one.kept, until=2) == {CREATION.hex(), failed.trace_id.hex()}, name
        for one in running.values():
            one.process.send_signal(signal.SIGTERM)
        for name, one in running.items():
            assert one.process.wait(PATIENCE) == 0, name
            assert traces_in(one.kept, until=0) == {CREATION.hex(), failed.trace_id.hex()}, name


def traces_in(path: Path, until: int) -> set[str]:
    """Return the ids of the traces that a file has, once it has so many."""
    deadline = time.monotonic() + PATIENCE
    while True:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        found = {
            span["traceId"]
            for line in lines
            for resource in json.loads(line)["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        }
        if len(found) >= until or time.monotonic() > deadline:
            return found
        threading.Event().wait(0.05)
