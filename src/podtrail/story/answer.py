"""Questions of `podtrail why` and their answers: asked over HTTP or of a recording, they are the same."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

from podtrail.story.library import DecisionStory, Library
from podtrail.story.lifetime import LifeMoment
from podtrail.story.lines import Explanation, Line, line, safe
from podtrail.story.names_alike import names_alike
from podtrail.story.pod import PodStory
from podtrail.story.pod_facts import pod_title
from podtrail.story.short_ids import LEAST_DIGITS, TRACE_DIGITS, is_beginning, traces_beginning
from podtrail.story.view import to_json
from podtrail.story.words import stamp

_MAX_NAME = 512
_NAMESAKES = 5
_COMPARED = 2_000
"""Pods, the urgent first, whose names are compared with one that may be mistyped."""
_NOTHING = Explanation(())


class WhyQuestion(NamedTuple):
    """What is asked: about a Pod (or one attempt of it), or about a trace."""

    pod: str = ""
    """`NAMESPACE/NAME`, a name that only one namespace has, or a uid."""
    trace: str = ""
    """Its id, or at least eight digits that it begins with, in small letters."""
    attempt: int | None = None
    cluster: str = ""
    """The Pod's, where several have one of that name; "" for any."""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Self:
        """Return the question that a query asks.

        Raises:
            ValueError: it asks none; the text says why.
        """
        names = ("pod", "trace", "attempt", "cluster")
        pod, trace, attempt, cluster = (query.get(name, "").strip() for name in names)
        if bool(pod) == bool(trace):
            raise ValueError("Ask for one of pod=NAMESPACE/NAME, pod=NAME, pod=UID and trace=ID.")
        if max(len(pod), len(cluster)) > _MAX_NAME:
            raise ValueError(f"A Pod's name has at most {_MAX_NAME} characters, and that of a cluster, too.")
        if cluster and trace:
            raise ValueError("cluster is that of a Pod.")
        if attempt and (trace or not (attempt.isascii() and attempt.isdecimal() and len(attempt) < 9)):
            raise ValueError("attempt is the number of an attempt of the Pod.")
        if trace and not is_beginning(trace):
            said = f"A trace id has {TRACE_DIGITS} hexadecimal digits; the first {LEAST_DIGITS} of them are enough."
            raise ValueError(said)
        return cls(pod, trace.lower(), int(attempt) if attempt else None, cluster)

    def query(self) -> Mapping[str, str]:
        """Return the query that asks it."""
        asked = {
            "pod": self.pod,
            "trace": self.trace,
            "attempt": "" if self.attempt is None else str(self.attempt),
            "cluster": self.cluster,
        }
        return {name: value for name, value in asked.items() if value}

    def answer(self, library: Library, now: int, *, live: bool) -> "WhyAnswer":
        """Return the answer of what a library holds, at `now`."""
        return answer_query(library, self, now, live=live)


def trace_id(text: str) -> bytes:
    """Return the bytes of a trace id.

    Raises:
        ValueError: it is none.
    """
    if len(text) != TRACE_DIGITS or not is_beginning(text):
        raise ValueError(f"A trace id has {TRACE_DIGITS} hexadecimal digits.")
    return bytes.fromhex(text)


class PodChoice(NamedTuple):
    """One of several Pods that may be meant."""

    cluster: str
    namespace: str
    key: str
    """Of the latest one of its name there."""


@dataclass(frozen=True, slots=True)
class WhyAnswer:
    """What is said to a question."""

    explanation: Explanation = _NOTHING
    pod: PodStory | None = None
    decisions: tuple[DecisionStory, ...] = ()
    """Of a trace: what was decided about it."""
    lifetime: tuple[LifeMoment, ...] = ()
    """Of a Pod: what happened to it, in order."""
    problem: str = ""
    """Why there is no answer: what is asked for is not known, or may be one of several."""
    choices: tuple[PodChoice, ...] = ()
    """The Pods that may be meant: of several namespaces, or of several clusters."""

    def as_json(self) -> dict[str, Any]:
        """Return it as a mapping for JSON: the lines, and the story they tell."""
        if self.problem:
            lists = {
                "namespaces": sorted({choice.namespace for choice in self.choices}),
                "clusters": sorted({choice.cluster for choice in self.choices}),
            }
            several = {name: values for name, values in lists.items() if len(values) > 1}
            return {"error": self.problem, **several} | ({"choices": to_json(self.choices)} if self.choices else {})
        told: dict[str, Any] = {
            "lines": to_json(self.explanation.lines),
            "details": to_json(self.explanation.details),
        }
        if self.pod is not None:
            told["pod"] = to_json(self.pod)
        if self.lifetime:
            told["lifetime"] = to_json(self.lifetime)
        if self.decisions:
            told["decisions"] = to_json(self.decisions)
        return told


def answer_query(library: Library, question: WhyQuestion, now: int, *, live: bool) -> WhyAnswer:
    """Return the answer of what a library holds, at `now`."""
    if question.trace:
        return _about_trace(library, question.trace)
    namespace, slash, name = question.pod.partition("/")
    cluster = question.cluster or None
    pods = library.find(name, namespace, cluster) if slash else library.find(question.pod, cluster=cluster)
    if not pods and slash:  # where spans have no uid, a name with its cluster is the key
        pods = library.find(question.pod, cluster=cluster)
    if not pods:
        return WhyAnswer(problem=_unknown(library, question))
    problem, choices = _ambiguous(question.pod, pods)
    if choices:
        return WhyAnswer(problem=problem, choices=choices)
    *others, pod = pods
    told = library.why_pod(pod, now, live=live, attempt=question.attempt)
    if told is None:
        numbers = [str(attempt.number) for attempt in pod.attempts]
        held = ", ".join(numbers if len(numbers) <= 20 else [*numbers[:10], "…", *numbers[-10:]])
        return WhyAnswer(
            problem=f"attempt {question.attempt} of {question.pod} is not held; of {pod.tries:,} there are {held}"
        )
    explanation = Explanation(told.lines, (*_namesakes(others), *told.details))
    return WhyAnswer(explanation, pod, lifetime=library.life_of(pod))


def _about_trace(library: Library, digits: str) -> WhyAnswer:
    short = len(digits) < TRACE_DIGITS
    found = traces_beginning(library, digits) if short else (bytes.fromhex(digits),)
    if len(found) > 1:
        ids = ", ".join(one.hex() for one in found[:_NAMESAKES])
        more = f" and {len(found) - _NAMESAKES:,} more" if len(found) > _NAMESAKES else ""
        return WhyAnswer(problem=f"{len(found):,} traces begin with {digits}: {ids}{more}")
    explanation = library.why_trace(found[0]) if found else None
    if explanation is None:
        begins = "a trace that begins with" if short else "trace"
        return WhyAnswer(problem=f"nothing is known of {begins} {digits}")
    return WhyAnswer(explanation, decisions=library.decisions_about(found[0]))


def _ambiguous(asked: str, pods: list[PodStory]) -> tuple[str, tuple[PodChoice, ...]]:
    """Return the Pods that may be meant, with a problem in words; none where there is no doubt."""
    namespaces = {pod.namespace for pod in pods}
    clusters = {pod.cluster for pod in pods}
    several_clusters = len(clusters - {""}) > 1
    if len(namespaces) == 1 and not several_clusters:
        return "", ()
    latest = {(pod.cluster if several_clusters else "", pod.namespace): pod.key for pod in pods}
    choices = tuple(sorted(PodChoice(*where, key) for where, key in latest.items()))
    if not several_clusters:
        return f"{len(namespaces)} namespaces have a Pod {asked}", choices
    silent = ", and one that does not say its cluster" if "" in clusters else ""
    where = f"{len(clusters - {''})} clusters"
    several = f"{len(namespaces)} namespaces of {where}" if len(namespaces) > 1 else where
    return f"{several} have a Pod {asked}{silent}", choices


def _unknown(library: Library, question: WhyQuestion) -> str:
    name = question.pod.rpartition("/")[2]
    pod = f"{question.pod} in cluster {question.cluster}" if question.cluster else question.pod
    pods = library.stories.pods()
    known = [one for one in pods if name in one.name or one.key == question.pod]
    if not known:
        mistyped = names_alike(name, {one.name for one in pods[:_COMPARED]})
        known = [one for one in pods if one.name in mistyped]
    if question.cluster:  # else it is not told why the others are not meant
        known = [replace(one, several_clusters=True) for one in known]
    alike = sorted({pod_title(one) for one in known})
    if not alike:
        return f"nothing is known of Pod {pod}"
    more = f" and {len(alike) - _NAMESAKES:,} more" if len(alike) > _NAMESAKES else ""
    return f"nothing is known of Pod {pod}; there is {', '.join(alike[:_NAMESAKES])}{more}"


def _namesakes(others: list[PodStory]) -> list[Line]:
    if not others:
        return []
    uids = ", ".join(safe(other.key, 80) for other in others[-_NAMESAKES:])
    last = others[-1].last_try_unix_nano
    until = f", the last of them tried at {stamp(last)}" if last else ""
    return [line(f"Earlier Pods of this name: {uids}{until}")]
