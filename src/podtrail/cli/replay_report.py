"""What a replay comes to: sums, as a table or as JSON, in which every span has its row."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TextIO

from podtrail.backtest import size as decimal_size
from podtrail.cli.reading import skipped_signals
from podtrail.component import DecidingConfig
from podtrail.config import printable
from podtrail.config.types import SECOND
from podtrail.otlp import Batch, Decision
from podtrail.pipeline.chain import PROCESSOR_ERROR
from podtrail.pipeline.settings import Settings
from podtrail.recording import Record
from podtrail.replay.flows import SAMPLED_OUT, Flows, ProcessorFlow
from podtrail.replay.rootless import Rootless
from podtrail.story import duration, several

_NOTHING: Final = "(nothing)"
_DAY: Final = 24 * 3600 * SECOND
_STITCHED: Final = b"podtrail.attempt.number"


def policies(settings: Settings) -> Sequence[str]:
    """Return the names of the policies of all samplers in use, in the order of the configuration."""
    configs = [settings.processors[id].config for id in deciding(settings)]
    return list(dict.fromkeys(name for config in configs for name in config.policy_names))


def deciding(settings: Settings) -> Sequence[str]:
    """Return the ids of the samplers in use."""
    used = dict.fromkeys(id for pipeline in settings.pipelines for id in pipeline.processors)
    return [id for id in used if isinstance(settings.processors[id].config, DecidingConfig)]


class ReplayTally:
    """Counts what comes and what leaves."""

    def __init__(self, named: Sequence[str] = (), flows: Flows | None = None, samplers: Sequence[str] = ()) -> None:
        """Make one.

        Args:
            named: policies that have their row even if they never say yes.
            flows: what became of the spans in each processor.
            samplers: the ids of the processors that decide.
        """
        self.requests = self.spans = self.rejected = self.damages = self.kept_spans = self.kept_bytes = 0
        self.others: Counter[str] = Counter()
        """Requests of other signals, which are skipped."""
        self.decisions: Counter[str] = Counter()
        self.failed_votes = 0
        """How often a policy was asked and failed."""
        self.stitched = False
        """Whether some of what came is what a link_stitching processor has passed on."""
        self.rootless = Rootless()
        self._named = named
        self._flows = flows or Flows("contain")
        self._samplers = frozenset(samplers)
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
            "otherSignals": dict(self.others),
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
            "droppedSpans": {id: dict(counted) for id, counted in self._dropped().items()},
            "unaccountedSpans": sum(flow.unaccounted() for flow in self._flows.flows),
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
            for name, dropped in self._dropped_rows():
                print(f"{name}: {several(dropped, 'span')}", file=out)
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
            print(f"a day of this: {spans:,} spans, {decimal_size(size)} before compression", file=out)
        print(file=out)
        table = list(self._rows())
        width = max(24, *(len(row[0]) for row in table))
        for name, *row in table:
            print("{:{}} {:>10} {:>10} {:>12}".format(name, width, *row), file=out)
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
        if self.others:
            yield skipped_signals(self.others)

    def _rows(self) -> Iterator[tuple[str, str, str, str]]:
        yield "POLICY", "VOTED YES", "DECIDED", "SPANS"
        for policy in self._policies():
            voted = "-" if policy == _NOTHING else f"{self._voted[policy]:,}"
            shown = printable(policy) + (" (shadow)" if policy in self._shadows else "")
            yield shown, voted, f"{self._decided_by[policy]:,}", f"{self._spans_by[policy]:,}"
        rest = {"(late, kept)": self._late_kept, "(late, not kept)": self._late_let_go, "(created)": self._created}
        for name, spans in (*rest.items(), *((f"({name})", spans) for name, spans in self._dropped_rows())):
            if spans:
                yield name, "-", "-", f"{spans:,}"

    def _dropped_rows(self) -> Iterator[tuple[str, int]]:
        """Yield spans that other processors than samplers dropped, or that any lost, with the words for it."""
        for id, counted in self._dropped().items():
            for reason, spans in counted.items():
                why = "" if reason == SAMPLED_OUT else f": {reason}"
                yield printable(f"dropped by {id}{why}"), spans

    def _dropped(self) -> Mapping[str, Mapping[str, int]]:
        found: dict[str, Counter[str]] = {}
        for flow in self._flows.flows:
            decides = flow.processor in self._samplers
            some = {reason: n for reason, n in flow.dropped.items() if not decides or reason == PROCESSOR_ERROR}
            if some:
                found.setdefault(flow.processor, Counter()).update(some)
        return found

    def _policies(self) -> Sequence[str]:
        seen = dict.fromkeys((*self._named, *self._voted, *self._decided_by))
        return [policy for policy in seen if policy != _NOTHING] + [_NOTHING] * (_NOTHING in seen)

    @property
    def _created(self) -> int:
        return sum(flow.created for flow in self._flows.flows)

    @property
    def _late_kept(self) -> int:
        """Spans that left a sampler for a decision made before they came."""
        kept = self._spans_by.total() - self._spans_by[_NOTHING]
        passed = sum(flow.left - flow.created for flow in self._deciding())
        return max(0, passed - kept - self._spared)

    @property
    def _late_let_go(self) -> int:
        let_go = sum(flow.dropped.total() - flow.dropped[PROCESSOR_ERROR] for flow in self._deciding())
        return max(0, let_go - self._spans_by[_NOTHING] + self._spared)

    def _deciding(self) -> Sequence[ProcessorFlow]:
        return [flow for flow in self._flows.flows if flow.processor in self._samplers]
