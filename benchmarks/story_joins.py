"""How much of what concerns a Pod on a recorded node is joined to its attempt, and that nothing is joined wrongly.

The truth is told by others than podtrail: the watch of the Pods (uids, container ids), the watch of Events (whom they
are about) and the API server's audit log (which Pod a request wrote), beside names in paths, which are unique there.
"""

import io
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import zstandard
from podtrail_processors.link_stitching.config import Config
from podtrail_processors.link_stitching.processor import LinkStitching

from podtrail.component import Context
from podtrail.otlp import Batch, Group, SpanView, resource_attributes, split
from podtrail.recording import Damage
from podtrail.recording.merging import merged

RECORDINGS: Final = Path(__file__).parents[1] / "tests" / "data" / "recordings" / "node"
_CLIENT: Final = 3
_WAIT: Final = 15_000_000_000
_POD_PATH: Final = re.compile(r"/namespaces/([^/]+)/pods/([^/?]+)")
_EVENT_PATH: Final = re.compile(r"/namespaces/[^/]+/events/([^/?]+)")
_KEY: Final = re.compile(r"/(pods|events)/([^/]+)/([^/]+)")
_IDS: Final = ("container.id", "sandbox.id", "task.id", "task.container.id", "cni.id")


@dataclass
class Span:
    """A span of the recording, with what is true of it and what was said of it."""

    view: SpanView
    service: str
    about: set[str] = field(default_factory=set)
    joined: set[str] = field(default_factory=set)


def lines(folder: Path, name: str) -> Iterator[Any]:
    """Yield the objects of a packed file of JSON lines."""
    with (folder / f"{name}.jsonl.zst").open("rb") as packed:
        for line in io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(packed), "utf-8"):
            yield json.loads(line)


class Truth:
    """What watches and audit log say of Pods."""

    def __init__(self, folder: Path) -> None:
        self.names: dict[str, str] = {}
        self.uids: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        self.audits: dict[str, str] = {}
        self.events: dict[str, str] = {}
        self.origins: dict[bytes, set[str]] = defaultdict(set)
        for line in lines(folder, "pods"):
            pod = line["event"]["object"]
            meta = pod["metadata"]
            place = f"{meta['namespace']}/{meta['name']}"
            self.names[meta["uid"]] = place
            assert self.uids.setdefault(place, meta["uid"]) == meta["uid"], "names are unique in the recording"
            context = meta.get("annotations", {}).get("tracing.k8s.io/traceparent")
            if context:
                self.origins[bytes.fromhex(context.split("-")[1])].add(meta["uid"])
            for status in pod.get("status", {}).get("containerStatuses", ()):
                ended = [state.get("terminated", {}).get("containerID", "") for state in _states(status)]
                for one in (status.get("containerID", ""), *ended):
                    self.ids[one.rpartition("//")[2]] = meta["uid"]
        self.ids.pop("", None)
        for line in lines(folder, "events"):
            event = line["event"]["object"]
            about = event.get("involvedObject") or event.get("regarding") or {}
            if about.get("kind") == "Pod" and about.get("uid") in self.names:
                self.events[event["metadata"]["name"]] = about["uid"]
        for line in lines(folder, "audit"):
            told = line.get("objectRef") or {}
            if told.get("resource") == "pods" and told.get("name"):
                self.audits[line["auditID"]] = self.uids.get(f"{told['namespace']}/{told['name']}", "")
            elif told.get("resource") == "events" and told.get("name"):
                self.audits[line["auditID"]] = self.events.get(told["name"], "")

    def learn_sandboxes(self, spans: Iterable[Span]) -> None:
        """Learn the ids of sandboxes, which no watch tells: their names contain the uid."""
        for span in spans:
            name = str(span.view.attributes.get("sandbox.name", ""))
            for uid in self.names:
                if uid in name:
                    self.ids[str(span.view.attributes["sandbox.id"])] = uid

    def pod_of(self, span: SpanView) -> str:
        """Return the uid of the Pod that a span by itself is about; "" for none."""
        told = span.attributes
        uid = told.get("k8s.pod.uid")
        if isinstance(uid, str):
            return uid
        for key in _IDS:
            if told.get(key) in self.ids:
                return self.ids[str(told[key])]
        if self.audits.get(str(told.get("audit-id"))):
            return self.audits[str(told["audit-id"])]
        if span.name.startswith(("Create etcd3", "GuaranteedUpdate etcd3", "Get etcd3")) and (
            key_found := _KEY.fullmatch(str(told.get("key")))
        ):
            if key_found[1] == "events":
                return self.events.get(key_found[3], "")
            return self.uids.get(f"{key_found[2]}/{key_found[3]}", "")
        for key in ("url.path", "http.target", "url", "url.full"):
            path = str(told.get(key, ""))
            if found := _POD_PATH.search(path):
                return self.uids.get(f"{found[1]}/{found[2]}", "")
            if found := _EVENT_PATH.search(path):
                return self.events.get(found[1], "")
        return ""


def _states(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [status.get("lastState", {}), status.get("state", {})]


def recorded(folder: Path, spare: Path) -> list[tuple[int, list[Group]]]:
    """Return the arrivals of a recording; where the scheduler sent no spans, with the attempts that its log tells."""
    paths = [str(folder / "spans.otlp.zst")]
    if (folder / "kube-scheduler.log.zst").exists():
        log = spare / "kube-scheduler.log.zst"
        log.write_bytes((folder / "kube-scheduler.log.zst").read_bytes())
        command = [str(Path(sys.executable).with_name("podtrail")), "reconstruct", "--log", str(log), "--year", "2026"]
        for watch in ("pods", "events"):
            command += [f"--{watch}", str(folder / f"{watch}.jsonl.zst")]
        subprocess.run([*command, "--output", str(spare / "attempts.otlp")], check=True, capture_output=True)
        paths.append(str(spare / "attempts.otlp"))

    def damaged(damage: Damage) -> None:
        raise ValueError(str(damage))

    return [(one.arrival, list(one.intake.groups)) for one in merged(paths, damaged)]


def stitched(arrivals: list[tuple[int, list[Group]]]) -> tuple[list[Span], Mapping[str, int]]:
    """Return all spans as `link_stitching` lets them go, and what it did not join by type and reason."""
    context = Context(id="link_stitching")
    processor = LinkStitching(Config(reorder_wait=_WAIT), context)
    out: list[Batch] = []
    for now, groups in arrivals:
        while (due := processor.deadline()) is not None and due <= now:
            out += processor.expire(due, 1 << 30)
        out += processor.add(Batch(groups, now), now).out
    out += processor.drain(arrivals[-1][0] + _WAIT)
    spans = [
        Span(SpanView(raw), str(resource_attributes(group.resource).get("service.name")))
        for batch in out
        for group in batch.groups
        for raw in split(group.spans)
    ]
    snapshot = context.metrics.snapshot()
    unjoined = snapshot.get("otelcol_processor_link_stitching_unjoined", {})
    return spans, {label.partition("reason=")[2]: int(count) for label, count in unjoined.items()}


class Traces:
    """Spans by trace, and which of them is below which."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self.spans: dict[bytes, Span] = {}
        self.traces: dict[bytes, list[Span]] = defaultdict(list)
        for span in spans:
            key = span.view.trace_id + span.view.span_id
            if key not in self.spans:
                self.spans[key] = span
                self.traces[span.view.trace_id].append(span)

    def ancestors(self, span: Span) -> Iterator[Span]:
        """Yield a span and those above it."""
        seen: set[bytes] = set()
        current: Span | None = span
        while current and current.view.span_id not in seen:
            seen.add(current.view.span_id)
            yield current
            current = self.spans.get(current.view.trace_id + current.view.parent_span_id)

    def _nearest(self, span: Span, marks: str) -> set[str]:
        return next((getattr(up, marks) for up in self.ancestors(span) if getattr(up, marks)), set())

    def spread(self, marks: str) -> None:
        """Give what holds of a span to those below it; to a whole trace where it holds of that alone."""
        for trace in self.traces.values():
            told = {uid for span in trace for uid in getattr(span, marks)}
            if len(told) == 1:
                for span in trace:
                    setattr(span, marks, set(told))
            elif told:
                found = {id(span): self._nearest(span, marks) for span in trace}
                for span in trace:
                    setattr(span, marks, set(found[id(span)]))


def judge(folder: Path, spans: list[Span]) -> Traces:
    """Say of each span which Pods it is about in truth, and to which it was joined."""
    truth = Truth(folder)
    truth.learn_sandboxes(spans)
    traces = Traces(spans)
    attempts: dict[bytes, str] = {}
    for span in spans:
        uid = truth.pod_of(span.view)
        span.about |= {uid} if uid else truth.origins.get(span.view.trace_id, set())
        if span.view.name == "SchedulePod":
            attempts[span.view.trace_id] = str(span.view.attributes["k8s.pod.uid"])
            span.joined.add(attempts[span.view.trace_id])
    for span in spans:
        for link in span.view.links:
            if link.trace_id in attempts:
                span.joined.add(attempts[link.trace_id])
            if span.view.trace_id in attempts and (other := traces.spans.get(link.trace_id + link.span_id)):
                other.joined.add(attempts[span.view.trace_id])
    traces.spread("about")
    traces.spread("joined")
    for span in spans:
        # The client that a Pod's annotation names need not have sent its span: what came of its trace is the origin.
        for link in span.view.links if span.view.name == "SchedulePod" else ():
            if link.attributes.get("podtrail.link.type") == "creation":
                for other in traces.traces.get(link.trace_id, ()):
                    other.joined.add(attempts[span.view.trace_id])
    for span in spans:
        # A client's span and the server's of its request are one story.
        for link in span.view.links:
            other = traces.spans.get(link.trace_id + link.span_id)
            if other is not None and other.view.kind == _CLIENT and other.service == "kubelet":
                other.about |= span.about
    return traces


@dataclass
class Figures:
    """What came of one recording."""

    spans: int = 0
    joined: int = 0
    wrong: int = 0
    by_pod: dict[str, tuple[int, int]] = field(default_factory=dict)
    missing: Counter[tuple[str, str]] = field(default_factory=Counter)
    unjoined: Mapping[str, int] = field(default_factory=dict)


def figures(name: str, spare: Path) -> Figures:
    """Return the figures of a recording."""
    folder = RECORDINGS / name
    spans, unjoined = stitched(recorded(folder, spare))
    traces = judge(folder, spans)
    found = Figures(unjoined=unjoined)
    names = Truth(folder).names
    counted: dict[str, list[int]] = {uid: [0, 0] for uid in names}
    for span in traces.spans.values():
        if span.view.name == "podtrail.amendment":
            continue
        found.wrong += len(span.joined - span.about)
        for uid in span.about & set(names):
            counted[uid][0] += 1
            counted[uid][1] += uid in span.joined
            if uid not in span.joined:
                found.missing[span.service, span.view.name] += 1
    found.by_pod = {names[uid]: (all_, joined) for uid, (all_, joined) in counted.items()}
    found.spans = sum(all_ for all_, _ in counted.values())
    found.joined = sum(joined for _, joined in counted.values())
    return found


def main() -> None:
    """Print the figures of both recordings."""
    for name in ("podtrail", "stock"):
        with tempfile.TemporaryDirectory() as spare:
            told = figures(name, Path(spare))
        share = f"{told.joined} of {told.spans} spans about a Pod joined, {told.joined / told.spans:.1%}"
        print(f"{name}: {share}; {told.wrong} joined wrongly")
        for pod, (all_, joined) in told.by_pod.items():
            print(f"  {pod:<34} {joined:4} of {all_:4}  {joined / max(all_, 1):.1%}")
        for (service, span), count in told.missing.most_common(12):
            print(f"  missing {count:4}  {service} {span}")
        print(f"  not linked, by the processor's own count: {dict(told.unjoined)}")
