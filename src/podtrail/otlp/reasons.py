"""Finds the plugin of a reason by kube-scheduler's own texts: messages count reasons without a plugin's name."""

import re
from functools import cache
from typing import Final, NamedTuple

from podtrail.otlp.reason_table import REASONS
from podtrail.otlp.remembering import remembering

_NEWEST: Final = max(last for _, _, last, _, _ in REASONS)
_NAMED = re.compile(
    r"node\(s\) didn't satisfy plugin(?:\(s\))? (?:\[([^\]]*)\]|(\S+))"
    r"|rejected due to timeout after waiting \S+ at plugin (\S+)"
)
_SIMILAR: Final = (
    (re.compile(r"^Insufficient "), "NodeResourcesFit"),
    (re.compile(r"\btaints?\b"), "TaintToleration"),
    (re.compile(r"node affinity/selector|node selector"), "NodeAffinity"),
    (re.compile(r"topology spread constraints"), "PodTopologySpread"),
    (re.compile(r"pod (anti-)?affinity|anti-affinity rules"), "InterPodAffinity"),
    (re.compile(r"free ports"), "NodePorts"),
    (re.compile(r"[Rr]esource ?[Cc]laim|device class"), "DynamicResources"),
    (re.compile(r"minCount|pod group"), "GangScheduling"),
)
"""For texts that no release in the table has."""


class _Row(NamedTuple):
    plugin: str
    first: int
    last: int
    status: str

    def distance(self, minor: int) -> int:
        """Return how many releases the row is from this one; 0 if the release has the text."""
        return max(self.first - minor, minor - self.last, 0)


def plugin_of(reason: str, minor: int = 0) -> str:
    """Return the plugin that gives a reason; "" if it is not known, several joined by ` or `.

    `minor` is the scheduler's minor release (35 for 1.35), 0 if it is not known: then the newest that has the text.
    """
    if named := _NAMED.search(reason):
        names = (named[1] or named[2] or named[3]).replace(",", " ").split()
        return " or ".join(dict.fromkeys(names))
    rows = _rows(reason, minor)
    if rows:
        return " or ".join(dict.fromkeys(row.plugin for row in rows))
    return next((plugin for pattern, plugin in _SIMILAR if pattern.search(reason)), "")


def status_of(reason: str, minor: int = 0) -> str:
    """Return the status with which the plugin gives a reason; "" if it is not known."""
    return next((row.status for row in _rows(reason, minor)), "")


@remembering(4096, 512)
def _rows(reason: str, minor: int) -> tuple[_Row, ...]:
    """Return the rows of a reason in the release, or in the nearest one that has it."""
    exact, patterns = _index()
    rows = exact.get(reason) or next((rows for pattern, rows in patterns if pattern.fullmatch(reason)), ())
    if not rows:
        return ()
    nearest = min(row.distance(minor or _NEWEST) for row in rows)
    return tuple(row for row in rows if row.distance(minor or _NEWEST) == nearest)


@cache
def _index() -> tuple[dict[str, list[_Row]], list[tuple[re.Pattern[str], list[_Row]]]]:
    """Return the rows by their text, and those whose text varies by a pattern, the longest text first."""
    rows: dict[str, list[_Row]] = {}
    for plugin, first, last, text, status in REASONS:
        rows.setdefault(text, []).append(_Row(plugin, first, last, status))
    varying = sorted((text for text in rows if "*" in text), key=lambda text: (-len(text), text))
    patterns = [(re.compile(re.escape(text).replace(r"\*", ".+")), rows[text]) for text in varying]
    return {text: found for text, found in rows.items() if "*" not in text}, patterns
