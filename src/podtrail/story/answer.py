"""Questions of `podtrail why` and their answers: asked over HTTP or of a recording, they are the same."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from podtrail.story.library import DecisionStory, Library
from podtrail.story.lifetime import LifeMoment, lifetime
from podtrail.story.lines import Explanation, Line, line, safe
from podtrail.story.pod import PodStory
from podtrail.story.view import to_json
from podtrail.story.words import stamp

_MAX_NAME = 512
_HEX = frozenset("0123456789abcdef")
_TRACE_DIGITS = 32
_NAMESAKES = 5
_NOTHING = Explanation(())


class WhyQuestion(NamedTuple):
    """What is asked: about a Pod (or one attempt of it), or about a trace."""

    pod: str = ""
    """`NAMESPACE/NAME`, a name that only one namespace has, or a uid."""
    trace: bytes = b""
    attempt: int | None = None

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Self:
        """Return the question that a query asks.

        Raises:
            ValueError: it asks none; the text says why.
        """
        pod, trace, attempt = (query.get(name, "").strip() for name in ("pod", "trace", "attempt"))
        if bool(pod) == bool(trace):
            raise ValueError("Ask for one of pod=NAMESPACE/NAME, pod=NAME, pod=UID and trace=ID.")
        if len(pod) > _MAX_NAME:
            raise ValueError(f"A Pod's name has at most {_MAX_NAME} characters.")
        if attempt and (trace or not (attempt.isascii() and attempt.isdecimal() and len(attempt) < 9)):
            raise ValueError("attempt is the number of an attempt of the Pod.")
        return cls(pod, trace_id(trace) if trace else b"", int(attempt) if attempt else None)


def trace_id(text: str) -> bytes:
    """Return the bytes of a trace id.

    Raises:
        ValueError: it is none.
    """
    if len(text) != _TRACE_DIGITS or not _HEX.issuperset(text.lower()):
        raise ValueError(f"A trace id has {_TRACE_DIGITS} hexadecimal digits.")
    return bytes.fromhex(text)


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
    namespaces: tuple[str, ...] = ()
    """Of the Pods that may be meant; () where it is not known which."""

    def as_json(self) -> dict[str, Any]:
        """Return it as a mapping for JSON: the lines, and the story they tell."""
        if self.problem:
            return {"error": self.problem} | ({"namespaces": list(self.namespaces)} if self.namespaces else {})
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
        explanation = library.why_trace(question.trace)
        if explanation is None:
            return WhyAnswer(problem=f"nothing is known of trace {question.trace.hex()}")
        return WhyAnswer(explanation, decisions=library.decisions_about(question.trace))
    namespace, slash, name = question.pod.partition("/")
    pods = library.find(name, namespace) if slash else library.find(question.pod)
    if not pods:
        return WhyAnswer(problem=_unknown(library, question.pod))
    namespaces = tuple(sorted({pod.namespace for pod in pods}))
    if len(namespaces) > 1:
        return WhyAnswer(problem=f"{len(namespaces)} namespaces have a Pod {question.pod}", namespaces=namespaces)
    *others, pod = pods
    told = library.why_pod(pod, now, live=live, attempt=question.attempt)
    if told is None:
        numbers = [str(attempt.number) for attempt in pod.attempts]
        held = ", ".join(numbers if len(numbers) <= 20 else [*numbers[:10], "…", *numbers[-10:]])
        return WhyAnswer(
            problem=f"attempt {question.attempt} of {question.pod} is not held; of {pod.tries:,} there are {held}"
        )
    explanation = Explanation(told.lines, (*_namesakes(others), *told.details))
    return WhyAnswer(explanation, pod, lifetime=tuple(lifetime(pod, *library.requests_of(pod))))


def _unknown(library: Library, pod: str) -> str:
    name = pod.rpartition("/")[2]
    alike = sorted({f"{one.namespace}/{one.name}" for one in library.stories.pods() if name in one.name})
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
