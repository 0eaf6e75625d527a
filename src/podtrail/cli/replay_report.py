"""What a replay comes to: sums, as a table or as JSON, in which every span has its row."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TextIO

from podtrail.cli.sizes import format_size
from podtrail.component import DecidingConfig, Ledger
from podtrail.config import printable
from podtrail.config.types import SECOND
from podtrail.otlp import Batch, Decision
from podtrail.pipeline.settings import Settings
from podtrail.recording import Record
from podtrail.replay.rootless import Rootless
from podtrail.story import duration, several

_NOTHING: Final = "(nothing)"
_DAY: Final = 24 * 3600 * SECOND
_STITCHED: Final = b"podtrail.attempt.number"


def policies(settings: Settings) -> Sequence[str]:
    """Return the names of the policies of all samplers in use, in the order of the configuration."""
    used = dict.fromkeys(id for pipeline in settings.pipelines for id in pipeline.processors)
    configs = [settings.processors[id].config for id in used]
    return list(dict.fromkeys(name for c in configs if isinstance(c, DecidingConfig) for name in c.policy_names))


class ReplayTally:
    """Counts what comes and what leaves."""

    def __init__(self, named: Sequence[str]) -> None:
        """Make one for the policies of this name, which have their row even if they never say yes."""
        self.ledgers: Mapping[str, Ledger] = {}
        """Those of the pipelines, by pipeline, which know what was created."""
        self.requests = self.spans = self.rejected = self.damages = self.kept_spans = self.kept_bytes = 0
        self.decisions: Counter[str] = Counter()
        self.failed_votes = 0
        """How often a policy was asked and failed."""
        self.stitched = False
        """Whether some of what came is what a link_stitching processor has passed on."""
        self.rootless = Rootless()
        self._named = named
        self._first = self._last = self._untimed = 0
        self._decided_by: Counter[str] = Counter()
        self._voted: Counter[str] = Counter()
        self._shadows: set[str] = set()
        self._spared = 0
        """Spans of traces that were not kept and passed in a dry run."""
        self._spans_by: Counter[str] = Counter()

    def came(self, record: Record) -> None:
        """Count a request."""
        self.requests += 1
        groups = record.intake.groups
        self.spans += sum([group[4] for group in groups])
        self.rejected += record.intake.rejected
        self.stitched = self.stitched or any(_STITCHED in group.spans for group in groups)
        self._untimed += not record.timed
        self._first = self._first or record.arrival
        self._last = max(self._last, record.arrival)

    def left(self, batch: Batch) -> None:
        """Count what leaves the processors of a pipeline."""
        self.kept_spans += batch.span_count
        self.kept_bytes += batch.size
        for verdict in batch.verdicts:
            self.rootless.add(verdict)
            if verdict.late and verdict.decision != "sampled":
                continue  # late spans have rows of their own, and the trace is counted
            if verdict.late:  # it is rescued
                self.decisions["not_sampled"] -= 1
                self._decided_by[_NOTHING] -= 1
            self.decisions[verdict.decision] += 1
            winner = verdict.policy if verdict.decision == "sampled" else _NOTHING
            self._decided_by[winner] += 1
            self._spans_by[winner] += verdict.spans
            if verdict.dry_run and winner == _NOTHING:
                self._spared += verdict.spans
            self._count(verdict.votes)
            if verdict.shadow is not None:
                self._shadows.update(verdict.shadow.votes)
                self._count(verdict.shadow.votes)

    def _count(self, votes: Mapping[str, Decision]) -> None:
        self._voted.update(policy for policy, vote in votes.items() if vote == "sampled")

    def as_json(self) -> dict[str, Any]:
        """Return the sums as a mapping for JSON."""
        return {
            "requests": self.requests,
            "spans": self.spans,
            "keptSpans": self.kept_spans,
            "keptBytes": self.kept_bytes,
            "aDay": {"keptSpans": self._a_day(self.kept_spans), "keptBytes": self._a_day(self.kept_bytes)},
            "rejectedSpans": self.rejected,
            "damages": self.damages,
            "decisions": dict(self.decisions),
            "policies": {
                policy: {
                    "votedYes": self._voted[policy],
                    "decided": self._decided_by[policy],
                    "spans": self._spans_by[policy],
                    **({"shadow": True} if policy in self._shadows else {}),
                }
                for policy in self._policies()
            },
            "lateSpans": {"kept": self._late_kept, "notKept": self._late_let_go},
            "createdSpans": self._created,
            "decidedBeforeRoot": self.rootless.traces,
            "failedVotes": self.failed_votes,
        }

    def print(self, out: TextIO) -> None:
        """Print the sums."""
        print(", ".join(self._came()), file=out)
        if self._untimed:
            whose = "the recording has" if self._untimed == self.requests else f"{self._untimed:,} requests have"
            print(f"arrival times are those of the spans' ends: {whose} none", file=out)
        if not self.decisions:
            print(f"no sampler decided anything: {self.kept_spans:,} spans pass", file=out)
            return
        traces, kept = self.decisions.total(), self.decisions["sampled"]
        print(
            f"{traces:,} traces decided: {kept:,} kept ({100 * kept / traces:.1f} %), "
            f"{self.kept_spans:,} spans leave the processors{', for it is a dry run' if self._spared else ''}",
            file=out,
        )
        if told := self.rootless.told:
            print(told, file=out)
        spans, size = self._a_day(self.kept_spans), self._a_day(self.kept_bytes)
        if spans is not None and size is not None:
            print(f"a day of this: {spans:,} spans, {format_size(size)} before compression", file=out)
        print(file=out)
        for row in self._rows():
            print("{:24} {:>10} {:>10} {:>12}".format(*row), file=out)
        if self.failed_votes:
            print(f"\n{self.failed_votes:,} times a policy was asked and failed: it had no vote there", file=out)

    def _a_day(self, amount: int) -> int | None:
        """Return what an amount comes to in a day; None when all came at one moment."""
        length = self._last - self._first
        return round(amount * _DAY / length) if length else None

    def _came(self) -> Iterator[str]:
        yield several(self.requests, "request")
        yield several(self.spans, "span")
        yield f"{duration(self._last - self._first)} of arrivals"
        if self.rejected:
            yield f"{self.rejected:,} invalid spans rejected"
        if self.damages:
            yield f"{self.damages:,} damaged {'place' if self.damages == 1 else 'places'} skipped"

    def _rows(self) -> Iterator[tuple[str, str, str, str]]:
        yield "POLICY", "VOTED YES", "DECIDED", "SPANS"
        for policy in self._policies():
            voted = "-" if policy == _NOTHING else f"{self._voted[policy]:,}"
            shown = printable(policy) + (" (shadow)" if policy in self._shadows else "")
            yield shown, voted, f"{self._decided_by[policy]:,}", f"{self._spans_by[policy]:,}"
        rest = {"(late, kept)": self._late_kept, "(late, not kept)": self._late_let_go, "(created)": self._created}
        for name, spans in rest.items():
            if spans:
                yield name, "-", "-", f"{spans:,}"

    def _policies(self) -> Sequence[str]:
        seen = dict.fromkeys((*self._named, *self._voted, *self._decided_by))
        return [policy for policy in seen if policy != _NOTHING] + [_NOTHING] * (_NOTHING in seen)

    @property
    def _created(self) -> int:
        return sum(ledger.created for ledger in self.ledgers.values())

    @property
    def _late_kept(self) -> int:
        """Spans that left for a decision made before they came."""
        kept = self._spans_by.total() - self._spans_by[_NOTHING]
        return max(0, self.kept_spans - self._created - kept - self._spared) if self.decisions else 0

    @property
    def _late_let_go(self) -> int:
        came = self.spans * len(self.ledgers)
        return max(0, came - self._spans_by.total() - self._late_kept) if self.decisions else 0
