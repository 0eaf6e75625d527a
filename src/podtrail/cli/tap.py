"""`podtrail tap`: decisions and spans as they leave a running podtrail. Data on stdout, notices on stderr."""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import click

from podtrail.cli import completing
from podtrail.cli.durations import DURATION
from podtrail.cli.reading import Failed
from podtrail.cli.running_page import NobodyThere, asking, endpoint_option, json_object, no_page
from podtrail.config import printable
from podtrail.otlp.decision_words import DECISION_CHOICES, read_decision
from podtrail.story import DECISION_WORDS, clock, duration, several, shell_word, visible
from podtrail.story.tap import TapFilter

_SECOND: Final = 1_000_000_000
_PATIENCE: Final = 10.0
"""Seconds without a line: the page tells of itself far more often."""
_MOST_BYTES: Final = 1 << 24
_FIRST_NOTICE: Final = 1.5
_NOTICES: Final = 15.0
"""Seconds from one notice that nothing matched to the next."""
_COLOURS: Final = {"sampled": "green", "dropped": "red"}


class _DecisionOption(click.Choice):  # type: ignore[type-arg] # generic in the stubs of newer versions alone
    """A word for a decision, in any spelling."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return `sampled` or `not_sampled`."""
        try:
            return read_decision(str(value))
        except ValueError:
            return super().convert(value, param, ctx)


class _Done(Exception):
    """Enough was seen."""


@dataclass(slots=True)
class _Tap:
    wanted: TapFilter
    as_json: bool
    limit: int | None
    until: float | None
    """By the monotonic clock."""
    colour: bool
    shown: int = 0
    lost: int = 0
    notice_due: float = 0.0

    def take(self, told: Mapping[str, Any]) -> None:
        """Print a line, or say what it tells of the stream.

        Raises:
            _Done: that was the last.
        """
        match told.get("kind"):
            case "listening":
                self._listening(told)
            case "status":
                self._status(told)
            case "decision" | "span" as kind:
                self._show(kind, told)
        if self.until is not None and time.monotonic() >= self.until:
            raise _Done

    def _listening(self, told: Mapping[str, Any]) -> None:
        self.notice_due = time.monotonic() + _FIRST_NOTICE
        what = " and ".join(name for name in ("decisions", "spans") if getattr(self.wanted, name))
        names = ("policy", "decision", "pod", "namespace", "name")
        asked = [f"{name} {shell_word(value)}" for name in names if (value := getattr(self.wanted, name))]
        _notice(f"listening for {what}{': ' if asked else ''}{', '.join(asked)}")
        known = told.get("policies")
        policies = [str(one) for one in known] if isinstance(known, list) else []
        if self.wanted.policy and policies and self.wanted.policy not in policies:
            _notice(f"no policy {self.wanted.policy} has voted lately; there is {', '.join(policies)}")

    def _status(self, told: Mapping[str, Any]) -> None:
        passed, matched, lost = (_whole(told.get(name)) for name in ("passed", "matched", "lost"))
        if lost > self.lost:
            _notice(f"too slow a reader: {lost - self.lost:,} that came by were lost")
            self.lost = lost
        if not matched and time.monotonic() >= self.notice_due:
            self.notice_due = time.monotonic() + _NOTICES
            _notice(
                f"nothing matched yet, of {passed:,} that came by" if passed else f"nothing came by yet{_last(told)}"
            )

    def _show(self, kind: str, told: Mapping[str, Any]) -> None:
        inner = told.get(kind)
        if not isinstance(inner, dict):
            return
        if self.as_json:
            whole = told.get("otlp") if kind == "span" else inner
            click.echo(json.dumps(whole, separators=(",", ":")))
        else:
            click.echo(decision_text(inner, colour=self.colour) if kind == "decision" else _span(inner))
        self.shown += 1
        if self.limit is not None and self.shown >= self.limit:
            raise _Done


@click.command("tap")
@endpoint_option
@click.option("--decisions", is_flag=True, help="Decisions: what is shown unless --spans is given alone.")
@click.option("--spans", is_flag=True, help="Spans that leave the pipelines.")
@click.option(
    "--policy",
    default="",
    metavar="NAME",
    shell_complete=completing.policies,
    help="Only what this policy decided, or said yes to.",
)
@click.option(
    "--decision",
    type=_DecisionOption(DECISION_CHOICES),
    help="Only these: sampled or kept; not_sampled, not_kept or dropped, which all mean what is not kept.",
)
@click.option(
    "--pod",
    default="",
    metavar="[NAMESPACE/]NAME|UID",
    shell_complete=completing.pods,
    help="Only what is about this Pod; * and ? stand in.",
)
@click.option(
    "-n",
    "--namespace",
    default="",
    metavar="NAME",
    shell_complete=completing.namespaces,
    help="Only what is about Pods of this namespace.",
)
@click.option("--name", default="", metavar="NAME", help="Only spans, or traces whose root, have this name.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="json: one object a line.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="End after so many lines.")
@click.option("--duration", "lasts", type=DURATION, help="End after so long.")
def command(endpoint: str, output: str, limit: int | None, lasts: int | None, **asked: Any) -> None:
    """Show decisions and spans as they leave a running podtrail's pipelines.

    -o json prints decisions as the file exporter writes them and spans as OTLP JSON, which other commands read. Who
    reads too slowly loses lines, and is told how many. Exit code 0: --limit or --duration is over, or podtrail has
    ended; 1: nobody to ask; 130: Ctrl-C.
    """
    decisions = asked.pop("decisions") or not asked.get("spans")
    try:
        wanted = TapFilter.read(
            {"decisions": str(decisions), **{name: str(value) for name, value in asked.items() if value}}
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    wanted = wanted._replace(otlp=output == "json" and wanted.spans)
    until = None if lasts is None else time.monotonic() + lasts / _SECOND
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    tap = _Tap(wanted, output == "json", limit, until, colour)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which ends the wait, and not the process
    try:
        for told in _lines(endpoint, wanted):
            tap.take(told)
    except _Done:
        return
    except KeyboardInterrupt:
        sys.exit(130)
    except NobodyThere as problem:
        raise Failed(str(problem)) from None
    _notice("podtrail has ended")


def _lines(endpoint: str, wanted: TapFilter) -> Iterator[Mapping[str, Any]]:
    with asking(endpoint, "/api/v1/tap", wanted.query(), _PATIENCE) as answer:
        told = json_object(answer.body.readline(_MOST_BYTES))
        if told is not None and "error" in told:
            raise NobodyThere(str(told["error"]))
        if told is None or told.get("kind") != "listening":  # which a page says first
            raise no_page(endpoint)
        yield told
        while raw := answer.body.readline(_MOST_BYTES):
            told = json_object(raw)
            if told is None:
                raise no_page(endpoint)
            yield told


def _notice(words: str) -> None:
    click.echo(f"podtrail: {printable(words)}", err=True)


def _last(told: Mapping[str, Any]) -> str:
    """Return when the latest came, before anybody listened; "" where nothing has, or who is asked doesn't say."""
    at, silent = _whole(told.get("lastUnixNano")), _whole(told.get("silentNano"))
    return f": the last came {duration(silent)} ago, at {clock(at)} UTC" if at else ""


def decision_text(told: Mapping[str, Any], *, colour: bool = False) -> str:
    """Return a decision as a line for people."""
    decision = str(told.get("decision"))
    word = f"{DECISION_WORDS.get(decision, visible(decision)):<8}"
    pod = told.get("podName")
    who = f"{told.get('podNamespace', '')}/{pod}" if pod else str(told.get("root") or "trace")
    parts = (
        clock(_whole(told.get("decidedAtUnixNano"))),
        click.style(word, fg=_COLOURS.get(decision), dim=decision == "not_sampled") if colour else word,
        visible(str(told.get("policy") or "-")),
        visible(who),
        visible(str(told.get("result", ""))),
        several(_whole(told.get("spans")), "span"),
        visible(str(told.get("reason", ""))),
        str(told.get("traceId", ""))[:32],
    )
    return "  ".join(part for part in parts if part)


def _span(told: Mapping[str, Any]) -> str:
    length = told.get("durationNano")
    pod = told.get("podName") or told.get("podUid")
    parts = (
        clock(_whole(told.get("startTimeUnixNano"))),
        visible(str(told.get("service") or "-")),
        visible(str(told.get("name"))),
        duration(length if isinstance(length, int) else None),
        visible(f"{told.get('podNamespace') or '-'}/{pod}") if pod else "",
        f"error: {visible(str(told.get('message', '')))}" if told.get("error") else "",
        visible(str(told.get("traceId", "")))[:32],
        visible(str(told.get("spanId", "")))[:16],
    )
    return "  ".join(part for part in parts if part)


def _whole(value: object) -> int:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 20:
        return int(value)
    return value if isinstance(value, int) else 0
