"""What `podtrail tap` lets pass: decisions and spans by filter, and each as the line that is sent."""

import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple, Self

from podtrail.otlp import Group, SpanView, Value, Verdict, frame, resource_attributes, split
from podtrail.otlp.decision_words import fits_decision, read_decision
from podtrail.otlp.decisions import decision_line
from podtrail.otlp.json_writing import write_json_request
from podtrail.story.decisions import title_of
from podtrail.story.stories import Stories
from podtrail.story.values import text
from podtrail.story.words import clip

_KEYS: Final = frozenset({"decisions", "spans", "policy", "decision", "pod", "namespace", "name", "otlp"})
_SWITCHES: Final = {"": True, "true": True, "1": True, "false": False, "0": False}
_LONGEST: Final = 256
_LONGEST_NAME: Final = 200


class TappedPod(NamedTuple):
    """The Pod that a span or a decision is about; "" for what is not told."""

    uid: str
    namespace: str
    name: str


class TapFilter(NamedTuple):
    """What is let pass. Names may have `*` and `?`; "" is everything."""

    decisions: bool = True
    spans: bool = False
    policy: str = ""
    """One that decided, or said yes."""
    decision: str = ""
    """`sampled`, or `not_sampled`, which policies that drop are part of."""
    pod: str = ""
    """Its `NAMESPACE/NAME`, its name or its uid."""
    namespace: str = ""
    name: str = ""
    """Of a span; of a trace's root."""
    otlp: bool = False
    """Lines of spans hold the whole span as well, in OTLP JSON."""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Self:
        """Return the filter that a query asks for: decisions, unless spans alone are asked for.

        Raises:
            ValueError: it can't be; the text says why.
        """
        unknown = sorted(set(query) - _KEYS)
        if unknown:
            raise ValueError(f"{clip(unknown[0], 40)} is none of {', '.join(sorted(_KEYS))}.")
        given = {key: query[key].strip() for key in ("policy", "decision", "pod", "namespace", "name") if key in query}
        if any(len(value) > _LONGEST for value in given.values()):
            raise ValueError(f"A filter has at most {_LONGEST} characters.")
        if given.get("decision"):
            given["decision"] = read_decision(given["decision"])
        switches = {key: _SWITCHES.get(query[key].lower()) for key in ("decisions", "spans", "otlp") if key in query}
        if None in switches.values():
            raise ValueError("decisions, spans and otlp are true or false.")
        spans = bool(switches.get("spans"))
        decisions = bool(switches.get("decisions", not spans))
        if not (decisions or spans):
            raise ValueError("Ask for decisions, spans or both.")
        return cls(decisions=decisions, spans=spans, otlp=bool(switches.get("otlp")), **given)

    def query(self) -> dict[str, str]:
        """Return the query that asks for it."""
        switches = {name: str(getattr(self, name)).lower() for name in ("decisions", "spans", "otlp")}
        names = {name: getattr(self, name) for name in ("policy", "decision", "pod", "namespace", "name")}
        return switches | {name: value for name, value in names.items() if value}

    def wants_decision(self, verdict: Verdict, stories: Stories) -> bool:
        """Return whether a decision passes."""
        if not fits_decision(verdict.decision, self.decision):
            return False
        if self.policy and verdict.policy != self.policy and verdict.votes.get(self.policy) != "sampled":
            return False
        if (self.pod or self.namespace) and not self._is_pod(_owner(verdict.trace_id, stories)):
            return False
        return not self.name or fnmatchcase(title_of(verdict.groups), self.name)

    def wants_span(self, span: SpanView, group: Group, stories: Stories) -> bool:
        """Return whether a span passes."""
        if self.name and not fnmatchcase(span.name, self.name):
            return False
        if self.decision or self.policy:
            decided = stories.decided(span.trace_id)
            if decided is None or not fits_decision(decided.decision, self.decision):
                return False
            if self.policy and decided.policy != self.policy:
                return False
        return not (self.pod or self.namespace) or self._is_pod(pod_of(span, group, stories))

    def _is_pod(self, pod: TappedPod) -> bool:
        if self.namespace and not fnmatchcase(pod.namespace, self.namespace):
            return False
        called = (f"{pod.namespace}/{pod.name}", pod.name, pod.uid)
        return not self.pod or any(each and fnmatchcase(each, self.pod) for each in called)


def pod_of(span: SpanView, group: Group, stories: Stories) -> TappedPod:
    """Return the Pod that a span names, or its resource; else the one whose attempt its trace is."""
    for told in (span.attributes, resource_attributes(group.resource)):
        uid, name = text(told.get("k8s.pod.uid")), text(told.get("k8s.pod.name"))
        if uid or name:
            return TappedPod(uid, _namespace(told), name)
    return _owner(span.trace_id, stories)


def spans_of(group: Group) -> Iterator[SpanView]:
    """Yield the spans of a group."""
    return map(SpanView, split(group.spans))


def decision_told(pipeline: str, verdict: Verdict) -> bytes:
    """Return a decision as a line, in the form of a file of decisions."""
    told = decision_line(verdict)
    if "podName" not in told:
        told["root"] = title_of(verdict.groups)
    return as_line({"kind": "decision", "pipeline": pipeline, "decision": told})


def span_told(pipeline: str, span: SpanView, group: Group, stories: Stories, *, otlp: bool) -> bytes:
    """Return a span as a line."""
    pod = pod_of(span, group, stories)
    told: dict[str, Any] = {
        "traceId": span.trace_id.hex(),
        "spanId": span.span_id.hex(),
        "name": clip(span.name, _LONGEST_NAME),
        "service": clip(text(resource_attributes(group.resource).get("service.name")), _LONGEST_NAME),
        "startTimeUnixNano": str(span.start),
        "durationNano": span.duration,
        "error": span.status.code == 2,
        "message": clip(span.status.message, _LONGEST_NAME),
        "podUid": pod.uid,
        "podNamespace": pod.namespace,
        "podName": pod.name,
    }
    line: dict[str, Any] = {"kind": "span", "pipeline": pipeline, "span": told}
    if otlp:
        alone = Group(group.resource, group.scope, span.trace_id, frame([span.raw]), 1)
        line["otlp"] = json.loads(write_json_request([alone]))
    return as_line(line)


def as_line(told: Mapping[str, Any]) -> bytes:
    """Return what is told as a line of JSON, in ASCII."""
    return json.dumps(told, separators=(",", ":")).encode() + b"\n"


def _owner(trace_id: bytes, stories: Stories) -> TappedPod:
    facts = stories.owner(trace_id)
    return TappedPod(facts.uid, facts.namespace, facts.name) if facts else TappedPod("", "", "")


def _namespace(told: Mapping[str, Value]) -> str:
    return text(told.get("k8s.namespace.name")) or text(told.get("k8s.pod.namespace"))
