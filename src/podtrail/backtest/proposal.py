"""A block of tail_sampling that keeps to a budget: what is asked for first, and of the rest what there is room for."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

from podtrail.backtest.budget import DAY, DailyBudget
from podtrail.backtest.measure import FIRST, RecordingCosts
from podtrail.config import Document
from podtrail.config.types import MILLISECOND, format_duration, parse_duration
from podtrail.pipeline.settings import Settings, read_settings

FAILED: Final = "failed"
SLOW: Final = "slow"
REST: Final = "sample of the rest"
CAPPED: Final = "the rest within the budget"
MARGIN: Final = 0.98
"""Of the room is given away: chance may choose a little more than its share."""
_QUANTILE: Final = re.compile(r"p([0-9]{1,2}(?:\.[0-9]+)?)(?: latency)?(?: and slower)?")
_SLOWER: Final = re.compile(r"slower than (\S+)")
_EXAMPLES: Final = 'write failed, "p99 latency" or "slower than 1s"'

Shortfall = Literal["", "slow", "failed"]
"""What the budget can't hold, though it was asked for."""


class KeepWish(NamedTuple):
    """What is to be kept whatever the rest."""

    failed: bool
    quantile: float | None = None
    """Attempts at this quantile of those that succeeded, and slower ones."""
    threshold: int | None = None
    """Attempts slower than this, nanoseconds."""

    def longer_than(self, measured: RecordingCosts) -> int | None:
        """Return beyond which time attempts are to be kept, nanoseconds; None for none."""
        if self.quantile is None:
            return self.threshold
        return _round(measured.quantile(self.quantile)) or None


@dataclass(frozen=True, slots=True)
class Proposal:
    """Which policies, with what settings. None: without this policy."""

    budget: DailyBudget
    failed: bool = False
    slow: int | None = None
    """Attempts longer than this, nanoseconds."""
    percentage: float | None = None
    first: bool = False
    """The first failure of each kind in an hour."""
    rate: float | None = None
    """Of all that nobody else keeps: so many spans or bytes a second."""
    shortfall: Shortfall = ""
    by_trace: bool = False
    """By statuses and lengths of traces: there are no attempts."""

    def yaml(self, head: Sequence[str] = (), comments: Mapping[str, str] | None = None) -> str:
        """Return the block; `comments` stand behind the policies of their names."""
        said = comments or {}
        lines = [
            *(f"# {line}" for line in head),
            "processors:",
            "  tail_sampling:",
            f"    decision_wait: 5m # longer than the longest {'trace' if self.by_trace else 'attempt'}",
            "    decision_wait_after_root_received: 5s",
            "    policies:",
        ]
        for name, type, settings in self._policies():
            comment = f" # {said[name]}" if name in said else ""
            lines += [f"      - name: {name}{comment}", f"        type: {type}", f"        {type}: {settings}"]
        return "\n".join(lines) + "\n"

    def settings(self) -> Settings:
        """Return the settings of a pipeline with this block.

        Raises:
            ConfigError: it is not valid.
        """
        return settings_around(self.yaml())

    def _policies(self) -> list[tuple[str, str, str]]:
        found: list[tuple[str, str, str]] = []
        if self.failed and self.by_trace:
            found.append((FAILED, "status_code", "{status_codes: [ERROR]}"))
        elif self.failed:
            found.append((FAILED, "scheduling_result", "{results: [Unschedulable, Error]}"))
        if self.first:
            found.append((FIRST, "new_reason", "{forget_after: 1h}"))
        if self.slow is not None and self.by_trace:
            found.append((SLOW, "latency", f"{{threshold_ms: {self.slow // MILLISECOND}}}"))
        elif self.slow is not None:
            found.append((SLOW, "slow_attempt", f"{{threshold: {format_duration(self.slow)}}}"))
        if self.percentage is not None:
            found.append((REST, "probabilistic", f"{{sampling_percentage: {self.percentage:g}}}"))
        if self.rate is not None:
            key = "service.name" if self.by_trace else "scheduler.profile, scheduler.result"
            settings = f"{{{self.budget.unit}_per_second: {self.rate:.6g}, key: [{key}]}}"
            found.append((CAPPED, "target_rate", settings))
        return found


MEASURING: Final = f"""\
processors:
  tail_sampling:
    decision_wait: 5m
    decision_wait_after_root_received: 5s
    policies:
      - {{name: everything, type: always_sample}}
      - {{name: {FIRST}, type: new_reason, new_reason: {{forget_after: 1h}}}}
"""
_AROUND: Final = """\
  link_stitching:
  batch:
receivers: {otlp: {protocols: {grpc: }}}
exporters: {debug: }
service:
  pipelines:
    traces: {receivers: [otlp], processors: [tail_sampling, link_stitching, batch], exporters: [debug]}
"""


def settings_around(block: str) -> Settings:
    """Return the settings of a pipeline around a block of processors.

    Raises:
        ConfigError: it is not valid.
    """
    return read_settings(Document.from_text(block + _AROUND, "proposal"), frozenset(), ("receivers", "exporters"))


class ReckoningTerms(NamedTuple):
    """What a proposal is calculated with, besides what was measured."""

    days: float
    """Over which it was measured."""
    overhead: float
    """How much more leaves than is chosen."""
    given: float = MARGIN
    """The share of the room left by what is kept whole that is given to chance."""
    by_trace: bool = False
    steady: bool = False
    """Chance by a fixed percentage: a rate is not kept to where traces are few and far between."""


def propose(budget: DailyBudget, wish: KeepWish, measured: RecordingCosts, terms: ReckoningTerms) -> Proposal:
    """Return what keeps to a budget, as far as can be reckoned."""
    room = budget.a_day * terms.days / terms.overhead
    unit = budget.unit
    whole = (measured.failed + measured.succeeded + measured.others).of(unit)
    failed = measured.failed.of(unit) if wish.failed else 0.0
    if failed > room:
        first = measured.first.of(unit)
        kept = first if first <= room else 0.0
        left = (room - kept) * terms.given
        can_be_first = first <= room and not terms.by_trace
        short = Proposal(budget, first=can_be_first, shortfall="failed", by_trace=terms.by_trace)
        if terms.steady:
            return replace(short, percentage=_percentage(100 * left / (whole - kept)))
        return replace(short, rate=max(left / terms.days / DAY, 1e-6))
    threshold = wish.longer_than(measured)
    if threshold is not None and terms.by_trace:  # the policy latency counts whole milliseconds
        threshold = max(1, threshold // MILLISECOND) * MILLISECOND
    shortfall: Shortfall = ""
    if threshold is not None and failed + measured.longer_than(threshold).of(unit) > room:
        shortfall = "slow"
        threshold = _round_up(measured.slowest_within(unit, room - failed))
        if threshold is not None and terms.by_trace:
            threshold = -(-threshold // MILLISECOND) * MILLISECOND
    slow = measured.longer_than(threshold).of(unit) if threshold is not None else 0.0
    rest = whole - failed - slow
    left = max(room - failed - slow, 0.0)
    # Where there is room for all, all is kept: that is not left to chance.
    share = 1.0 if rest <= left and terms.given == MARGIN else min(left / rest, 1.0) * terms.given
    percentage = _percentage(100 * share)
    return Proposal(budget, wish.failed, threshold, percentage, shortfall=shortfall, by_trace=terms.by_trace)


def _percentage(value: float) -> float:
    """Return a percentage of three digits, none above what was given and 100."""
    if value >= 100:
        return 100.0
    digits = f"{value:.3g}"
    return float(digits) if float(digits) <= value else float(f"{value * 0.995:.3g}")


def _round(duration: int) -> int:
    """Return a length of time that reads well, and is no longer: whole milliseconds, or three digits of less."""
    if duration >= 10 * MILLISECOND:
        return duration // MILLISECOND * MILLISECOND
    return duration // 1_000 * 1_000 if duration >= 10_000 else duration


def _round_up(duration: int | None) -> int | None:
    """Return a length of time of three digits that is not shorter."""
    if duration is None:
        return None
    step: int = 10 ** max(len(str(duration)) - 3, 0)
    return -(-duration // step) * step


def parse_wish(texts: Iterable[str]) -> KeepWish:
    """Return what several wishes come to, written as `failed`, `p99 latency` or `slower than 1s`.

    Raises:
        ValueError: one is not understood, or two are about how slow.
    """
    wish = KeepWish(failed=False)
    for text in texts:
        words = " ".join(text.lower().split())
        if words == "failed":
            wish = wish._replace(failed=True)
            continue
        if wish.quantile is not None or wish.threshold is not None:
            raise ValueError(f"{text!r}: how slow is kept is said already")
        if (found := _QUANTILE.fullmatch(words)) and float(found[1]) > 0:
            wish = wish._replace(quantile=float(found[1]) / 100)
        elif found := _SLOWER.fullmatch(words):
            wish = wish._replace(threshold=_positive(found[1]))
        else:
            raise ValueError(f"{text!r} is not understood: {_EXAMPLES}")
    return wish


def _positive(text: str) -> int:
    threshold = parse_duration(text)
    if threshold <= 0:
        raise ValueError(f"{text!r} is no length of time: {_EXAMPLES}")
    return threshold
