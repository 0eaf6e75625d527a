"""Where `podtrail why` gets its answers: a running page, or files. Both answer in the same form."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from podtrail.cli.foreign import foreign
from podtrail.cli.reading import show_other_signals
from podtrail.cli.running_page import get_json, no_page
from podtrail.pipeline.settings import Settings
from podtrail.recording import Damage, OtherSignal
from podtrail.story import Library
from podtrail.story.decision_lines import read_decision
from podtrail.story.inscriptions import read_inscription
from podtrail.story.words import stamp

_LINE: Final = 1 << 24


class AnswerOfSource(Protocol):
    """What a library answers."""

    def as_json(self) -> dict[str, Any]:
        """Return it as the page's API gives it."""


class Question(Protocol):
    """What is asked."""

    def query(self) -> Mapping[str, str]:
        """Return the query by which the page's API is asked."""

    def answer(self, library: Library, now: int, *, live: bool) -> AnswerOfSource:
        """Return what a library answers, at `now`."""


class WhyReply(NamedTuple):
    """What was answered."""

    told: Mapping[str, Any]
    """As the page's API gives it: `lines`, `details`, `pod`, `decisions`; or `error`."""
    whom: str
    """Who was asked, and since when that is held, in words."""


def ask_page(endpoint: str, question: Question, otherwise: str = ", or use --from") -> WhyReply:
    """Ask a running page; `otherwise`: what else to do where nobody answers.

    Raises:
        NobodyThere: none answers there.
    """
    told = get_json(endpoint, "/api/v1/why", question.query(), otherwise=otherwise)
    if not ("error" in told or isinstance(told.get("lines"), list)):
        raise no_page(endpoint)
    return WhyReply(told, f"asked {endpoint}{_since(told)}")


def _since(told: Mapping[str, Any]) -> str:
    since = told.get("heldSinceUnixNano")
    if not (isinstance(since, str) and since.isascii() and since.isdecimal()):
        return ""
    let_go = told.get("forgottenPods")
    some = f"; {let_go:,} older Pods were let go" if isinstance(let_go, int) and let_go else ""
    return f", which holds what came in since {stamp(int(since))} of its own clock{some}"


@dataclass(slots=True)
class AskedFiles:
    """Files that are asked: recordings, and decisions that were written down."""

    paths: Sequence[Path]
    settings: Settings | None
    """Whose policies decide about what the recordings hold; None: nobody does."""
    gates: Collection[str]
    skipped: Callable[[str], None]
    """Is told what could not be read, and where."""
    others: Counter[str] = field(default_factory=Counter)
    """Requests of other signals, which are skipped."""

    def ask(self, question: Question) -> WhyReply:
        """Read the files and answer from them.

        Raises:
            OSError: one can't be read.
            ValueError: one is no recording and holds no decisions.
        """
        decided, recorded = self._sorted()
        library = Library(max_mib=512, max_decisions_mib=256, max_pods=500_000)
        span = ArrivalRange()
        for path in decided:  # before the spans: they bear less of the decision
            span = span.with_(self._read_decisions(path, library))
        span = span.with_(self._replay(recorded, library) if self.settings else self._read(recorded, library))
        answer = question.answer(library, max(library.stories.latest, span.last), live=False)
        told = answer.as_json()
        named = ", ".join(map(str, self.paths))
        since = f": what came from {stamp(span.first)} to {stamp(span.last)}" if span.last else ""
        lost = library.stories.tallies.forgotten_pods
        some = f"; {lost:,} older Pods were let go" if lost else ""
        show_other_signals(self.others)
        return WhyReply(told, f"read {named}{since}{some}")

    def _sorted(self) -> tuple[list[Path], list[Path]]:
        decided: list[Path] = []
        recorded: list[Path] = []
        for path in self.paths:
            what = foreign(path)
            if not what:
                recorded.append(path)
            elif not what.startswith("a file of decisions"):
                raise ValueError(f"{path} is {what}")
            elif self.settings:
                raise ValueError(f"{path} holds decisions that were made: leave it out, or --config")
            else:
                decided.append(path)
        return decided, recorded

    def _read(self, paths: Sequence[Path], library: Library) -> "ArrivalRange":
        from podtrail.replay.replayer import read_records

        period = ArrivalRange()
        for record in read_records(paths, self._damaged):
            library.keep(record.intake.groups, record.arrival)
            for verdict in filter(None, map(read_inscription, record.intake.groups)):
                if not library.decisions.find(verdict.trace_id):
                    library.read(verdict, None)
            period = period.with_(ArrivalRange(record.arrival, record.arrival))
        return period

    def _replay(self, paths: Sequence[Path], library: Library) -> "ArrivalRange":
        from podtrail.cli.processor_lines import processor_lines
        from podtrail.otlp import Batch
        from podtrail.replay.flows import Flows
        from podtrail.replay.replayer import Replayer, read_records

        def sink(pipeline: str, batch: Batch) -> None:
            library.decide(pipeline, batch)
            library.keep(batch.groups, batch.arrived)

        assert self.settings is not None
        period = ArrivalRange()
        with processor_lines():
            replayer = Replayer(self.settings, sink, self.gates, around=Flows("contain").around)
            for record in read_records(paths, self._damaged):
                replayer.add(record.arrival, record.intake)
                period = period.with_(ArrivalRange(record.arrival, record.arrival))
            replayer.finish()
        return period

    def _read_decisions(self, path: Path, library: Library) -> "ArrivalRange":
        period = ArrivalRange()
        for number, raw in _lines(path):
            try:
                verdict, attempt, cluster = read_decision(raw)
            except (ValueError, RecursionError) as error:
                self.skipped(f"{path}:{number}: {error}")
                continue
            library.read(verdict, attempt, cluster)
            if verdict.arrived:
                period = period.with_(ArrivalRange(verdict.arrived, verdict.arrived))
        return period

    def _damaged(self, damage: Damage) -> None:
        if isinstance(damage, OtherSignal):
            self.others[damage.signal] += 1
        else:
            self.skipped(str(damage))


@dataclass(slots=True)
class AskedSchedulerFiles:
    """What a stock kube-scheduler leaves behind, asked: its attempts are rebuilt."""

    logs: Sequence[Path]
    watches: Sequence[Path]
    timezone: str = ""
    """That of the logs; empty: derived, else UTC."""

    def ask(self, question: Question) -> WhyReply:
        """Rebuild the attempts and answer from them.

        Raises:
            OSError: a file can't be read.
        """
        from podtrail.cli.scheduler_files import rebuild
        from podtrail.cli.transitions import transitions_in
        from podtrail.reconstruction import NO_ZONE, Correlator, LineCounts, trace

        library = Library(max_mib=512, max_decisions_mib=256, max_pods=500_000)
        correlator = Correlator()
        line_counts = {"log": LineCounts(), "watch": LineCounts()}
        period = ArrivalRange()
        for one in rebuild(correlator, self.logs, {"watch": self.watches}, line_counts, timezone=self.timezone):
            library.keep([trace(one)], one.draft.end)
            period = period.with_(ArrivalRange(one.draft.start, one.draft.end))
        for path in self.watches:
            for arrival, groups in transitions_in(path):
                library.keep(groups, arrival)
        for pod in correlator.pending():
            library.stories.note_observed(pod)
        end = max(counts.newest for counts in line_counts.values())
        answer = question.answer(library, max(library.stories.latest, period.last, end), live=False)
        read = ", ".join(map(str, (*self.logs, *self.watches)))
        attempts = correlator.outcome.attempts.total()
        unknown = sum(counts.unknown.total() for counts in line_counts.values())
        odd = f", {unknown:,} lines unknown" if unknown else ""
        if NO_ZONE in line_counts["log"].notes:
            odd += "; the log's times are read as UTC, which --timezone changes"
        since = f" from {stamp(period.first)} to {stamp(period.last)}" if period.last else ""
        return WhyReply(answer.as_json(), f"read {read}: {attempts:,} attempts{since} rebuilt{odd}")


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(_LINE):
            number += 1
            if raw.strip():
                yield number, raw


class ArrivalRange(NamedTuple):
    """From the first arrival to the last, Unix nanoseconds; zeros: nothing came."""

    first: int = 0
    last: int = 0

    def with_(self, other: "ArrivalRange") -> "ArrivalRange":
        """Return the period that covers both."""
        firsts = [first for first in (self.first, other.first) if first]
        return ArrivalRange(min(firsts, default=0), max(self.last, other.last))
