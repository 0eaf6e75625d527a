"""`podtrail recording anonymize`: nothing that names anything survives, everything that belongs together still does."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from podtrail.cli import main
from podtrail.otlp import Group, SpanView, attempt_of, read_request, split, write_request
from podtrail.otlp.json import read_json_request
from podtrail.otlp.rewriting import Rewriter
from podtrail.recording import Record, RecordingWriter, read_recording
from podtrail.recording.masking import Masking
from podtrail.recording.statistics import Statistics
from podtrail.recording.vocabulary import IN_WORDS, KEPT, WORDS
from podtrail.testing import replay

DATA = Path(__file__).parents[1] / "data" / "recordings"
REAL = [DATA / name for name in ("apiserver.otlp", "scheduler.otlp.gz", "pod-requests.otlp.jsonl")]
HOUR = 3_600_000_000_000
WORD = re.compile(r"[\w.\-]*\w")
NUMBER = re.compile(r"[0-9.]+(ns|us|ms|s|m|h|k|Ki|M|Mi|G|Gi)?")


def anonymize(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["recording", "anonymize", *map(str, arguments)])


def records(path: Path) -> list[Record]:
    return [item for item in read_recording(path) if isinstance(item, Record)]


def groups(path: Path) -> list[Group]:
    return [group for record in records(path) for group in record.intake.groups]


def statistics(path: Path) -> Statistics:
    found = Statistics()
    for record in records(path):
        found.add(record)
    return found


def as_json(path: Path, to: Path) -> list[Any]:
    with RecordingWriter(to) as writer:
        for record in records(path):
            writer.write(record.intake.groups, record.arrival)
    return [json.loads(line) for line in to.read_bytes().splitlines()]


def strings(value: Any, key: str = "") -> Iterator[str]:
    """Yield all strings in OTLP JSON, the values of attributes that stay left out, and keys."""
    if isinstance(value, list):
        for inner in value:
            yield from strings(inner, key)
    elif isinstance(value, Mapping):
        if "key" in value:
            if value["key"] not in KEPT:
                yield from strings(value["value"], value["key"])
            return
        for name, inner in value.items():
            if not name.endswith("UnixNano"):
                yield from strings(inner, name if name not in ("stringValue", "values") else key)
    elif isinstance(value, str) and not value.startswith("plugin: "):
        yield value


def secrets(path: Path, to: Path) -> set[str]:
    """Return the words of a recording that are not everybody's."""
    lines = as_json(path, to)
    words = {word for line in lines for text in strings(line) for word in WORD.findall(text)}
    everybodys = {key for line in lines for key in keys(line)}
    return {word for word in words - everybodys if word.lower() not in WORDS and not NUMBER.fullmatch(word)}


def keys(value: Any) -> Iterator[str]:
    """Yield the keys of OTLP JSON and of attributes: these stay."""
    if isinstance(value, list):
        for inner in value:
            yield from keys(inner)
    elif isinstance(value, Mapping):
        yield from value
        yield from filter(None, [value.get("key")])
        yield from keys(list(value.values()))


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
@pytest.mark.parametrize("name", ["a.jsonl", "a.otlp"])
def test_no_original_word_is_in_the_bytes_that_are_given_away(path: Path, name: str, tmp_path: Path) -> None:
    done = anonymize(path, "--to", tmp_path / name)
    assert done.exit_code == 0, done.output
    raw = (tmp_path / name).read_bytes()
    hidden = secrets(path, tmp_path / "plain.jsonl")
    assert len(hidden) > 70
    words = set(re.findall(rb"[\w.\-]+", raw))
    assert [word for word in hidden if len(word) > 3 and word.encode() in words] == []
    ids = {raw_id for group in groups(path) for span in split(group.spans) for raw_id in _ids(SpanView(span))}
    assert [raw_id for raw_id in ids if raw_id in raw or raw_id.hex().encode() in raw] == []


def _ids(span: SpanView) -> Iterator[bytes]:
    yield from filter(None, (span.trace_id, span.span_id, span.parent_span_id))
    for link in span.links:
        yield from (link.trace_id, link.span_id)


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_counts_plugins_results_and_the_tree_stay(path: Path, tmp_path: Path) -> None:
    anonymize(path, "--to", tmp_path / "a.otlp")
    before, after = statistics(path), statistics(tmp_path / "a.otlp")
    for name in ("requests", "spans", "odd_times", "attempts", "early", "put_off"):
        assert getattr(before, name) == getattr(after, name), name
    assert before.rejections.counts == after.rejections.counts
    assert before.results.counts == after.results.counts
    assert before.names.counts == after.names.counts
    assert before.services.counts == after.services.counts
    assert len(before.pods.counts) == len(after.pods.counts)
    assert (before.traces.count, before.traces.orphans) == (after.traces.count, after.traces.orphans)
    assert (before.times.first, before.times.last) == (after.times.first, after.times.last)
    assert [record.arrival for record in records(path)] == [record.arrival for record in records(tmp_path / "a.otlp")]


def test_links_still_lead_to_the_traces_that_they_led_to(tmp_path: Path) -> None:
    anonymize(*REAL, "--to", tmp_path / "a.otlp")

    def led(found: list[Group]) -> list[bool]:
        traces = {group.trace_id for group in found}
        views = [SpanView(raw) for group in found for raw in split(group.spans)]
        return [link.trace_id in traces for view in views for link in view.links]

    before = led([group for record in sorted_by_arrival() for group in record.intake.groups])
    assert before == led(groups(tmp_path / "a.otlp"))
    assert before


def sorted_by_arrival() -> list[Record]:
    return sorted((record for path in REAL for record in records(path)), key=lambda record: record.arrival)


def test_the_same_key_replaces_the_same_and_another_does_not(tmp_path: Path) -> None:
    for name, key in (("a", "one"), ("b", "one"), ("c", "two")):
        assert anonymize(REAL[1], "--to", tmp_path / f"{name}.otlp", "--key", key).exit_code == 0
    assert (tmp_path / "a.otlp").read_bytes() == (tmp_path / "b.otlp").read_bytes()
    assert not _traces(tmp_path / "a.otlp") & _traces(tmp_path / "c.otlp")


def _traces(path: Path) -> set[bytes]:
    return {group.trace_id for group in groups(path)}


def test_times_are_moved_together(tmp_path: Path) -> None:
    anonymize(REAL[0], "--to", tmp_path / "a.otlp", "--shift", "-1h")
    before, after = statistics(REAL[0]), statistics(tmp_path / "a.otlp")
    assert after.times.first == before.times.first - HOUR
    assert after.arrivals.last == before.arrivals.last - HOUR
    assert after.early == before.early


def test_policies_decide_about_it_as_about_the_original(tmp_path: Path) -> None:
    anonymize(*REAL, "--to", tmp_path / "a.otlp")
    policies = [
        {"name": "failed", "type": "status_code", "status_code": {"status_codes": ["ERROR"]}},
        {"name": "slow", "type": "latency", "latency": {"threshold_ms": 20}},
        {"name": "fit", "type": "rejected_by", "rejected_by": {"plugins": ["NodeResourcesFit"]}},
    ]
    config = {
        "receivers": {"otlp": {"protocols": {"grpc": {}}}},
        "processors": {"tail_sampling": {"policies": policies}},
        "exporters": {"debug": {}},
        "service": {
            "pipelines": {"traces": {"receivers": ["otlp"], "processors": ["tail_sampling"], "exporters": ["debug"]}}
        },
    }
    before, after = replay(config, list(REAL)), replay(config, tmp_path / "a.otlp")
    assert [(d["decision"], d["policy"], d["spans"]) for d in before.decisions] == [
        (d["decision"], d["policy"], d["spans"]) for d in after.decisions
    ]
    assert {"failed", "slow"} <= {d["policy"] for d in before.decisions}


def one(span: Mapping[str, Any], resource: Mapping[str, Any] | None = None) -> SpanView:
    """Return what a span in OTLP JSON becomes."""
    ids = {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174"}
    request = {"resourceSpans": [{"resource": resource or {}, "scopeSpans": [{"spans": [{**ids, **span}]}]}]}
    intake = read_json_request(json.dumps(request).encode())
    (group,) = Rewriter(Masking(b"key")).rewrite(intake.groups)
    return SpanView(split(group.spans)[0])


def test_a_name_is_the_same_in_attributes_messages_and_names() -> None:
    found = one(
        {
            "name": "GET /api/v1/namespaces/shop/pods/web-0",
            "status": {
                "code": 2,
                "message": 'pods "web-0" is forbidden: 0/15 nodes are available, 3 Insufficient cpu.',
            },
            "attributes": [{"key": "k8s.pod.name", "value": {"stringValue": "web-0"}}],
        }
    )
    name = found.attributes["k8s.pod.name"]
    assert isinstance(name, str)
    assert re.fullmatch("[a-z2-7]{10}", name)
    assert found.status.message == f'pods "{name}" is forbidden: 0/15 nodes are available, 3 Insufficient cpu.'
    assert re.fullmatch(rf"GET /api/v1/namespaces/[a-z2-7]{{10}}/pods/{name}", found.name)


def test_unknown_fields_are_left_out() -> None:
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    spans.add(trace_id=bytes(15) + b"\1", span_id=bytes(7) + b"\1", name="a")
    raw = request.SerializeToString()
    hidden = raw.replace(b"\x2a\x01a", b"\x2a\x01a\xa2\x3f\x04acme")  # field 1012
    grown = bytearray(hidden)
    for at in (1, 3, 5):
        grown[at] += 7
    groups = read_request(bytes(grown)).groups
    assert b"acme" in groups[0].spans
    assert b"acme" not in write_request(Rewriter(Masking(b"key")).rewrite(groups))


def test_no_field_that_can_hold_text_is_overlooked() -> None:
    """What rewriting takes care of; a field that a later OTLP adds has to be added there."""
    attributes = ("key", "value.string_value", "value.bytes_value")
    known = {"schema_url", "scope_spans.schema_url", "scope_spans.scope.name", "scope_spans.scope.version"}
    known |= {f"resource.entity_refs.{name}" for name in ("schema_url", "type", "id_keys", "description_keys")}
    span = "scope_spans.spans"
    known |= {f"{span}.{name}" for name in ("trace_id", "span_id", "parent_span_id", "trace_state", "name")}
    known |= {f"{span}.events.name", f"{span}.status.message"}
    known |= {f"{span}.links.{name}" for name in ("trace_id", "span_id", "trace_state")}
    for place in ("resource", "scope_spans.scope", span, f"{span}.events", f"{span}.links"):
        known |= {f"{place}.attributes.{name}" for name in attributes}
    assert set(_texts(ResourceSpans.DESCRIPTOR, ())) == known


def _texts(message: Descriptor, above: tuple[str, ...], path: str = "") -> Iterator[str]:
    for field in message.fields:
        name = f"{path}{field.name}"
        if field.message_type is not None:
            if field.message_type.full_name not in above:
                yield from _texts(field.message_type, (*above, field.message_type.full_name), f"{name}.")
        elif field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
            yield name


def test_the_lists_of_what_stays_do_not_overlap() -> None:
    assert not KEPT & IN_WORDS
    assert all(word == word.lower() for word in WORDS)


def test_a_pod_is_still_recognised_by_its_new_name(tmp_path: Path) -> None:
    anonymize(REAL[1], "--to", tmp_path / "a.otlp", "--key", "k")
    attempts = [attempt for group in groups(tmp_path / "a.otlp") if (attempt := attempt_of([group]))]
    pod = next(f"{a.namespace}/{a.name}" for a in attempts if a.result == "Unschedulable")
    done = CliRunner().invoke(
        main, ["recording", "cut", str(tmp_path / "a.otlp"), "--to", str(tmp_path / "cut.otlp"), "--pod", pod]
    )
    assert done.exit_code == 0, done.output
