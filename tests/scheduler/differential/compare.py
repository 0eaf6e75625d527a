"""Our answers beside kube-scheduler's, field by field."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from .answers import Answer, Answers

_DEVICE = re.compile(r"gpu\.example\.com/\w+(/\w+)?")


class Comparison(NamedTuple):
    """One field of one answer."""

    case: str
    pod: str
    field: str
    theirs: Any
    """kube-scheduler's."""
    ours: Any

    @property
    def alike(self) -> bool:
        """Whether both say the same."""
        return bool(self.theirs == self.ours)

    @property
    def family(self) -> str:
        """The family of the case."""
        return self.case.partition("/")[0]

    @property
    def place(self) -> str:
        """Where it is, to name it in a list."""
        return f"{self.case} {self.pod} {self.field}"


def compare(theirs: Answers, ours: Answers) -> Iterator[Comparison]:
    """Everything that both were asked; which nodes are sampled of many is chance."""
    if theirs.order:
        yield Comparison(theirs.case, "all", "order", theirs.order, ours.order)
    for their, our in zip(theirs.steps, ours.steps, strict=False):
        for field, one, other in _fields(their, our, theirs.case.partition("/")[0]):
            yield Comparison(theirs.case, their.pod, field, one, other)


def _fields(theirs: Answer, ours: Answer, family: str) -> Iterator[tuple[str, Any, Any]]:
    yield "outcome", theirs.outcome, ours.outcome
    if theirs.outcome != ours.outcome:
        return
    if family == "sampling":
        yield "number of nodes that fit", theirs.fitting, ours.fitting
    elif theirs.outcome in {"bound", "chosen"}:
        yield "nodes that fit", _fitting(theirs), _fitting(ours)
        for plugin in sorted({*theirs.scores, *ours.scores}):
            yield f"score of {plugin}", _scores(theirs, plugin), _scores(ours, plugin)
        if theirs.totals:
            yield "total scores", theirs.totals, dict(ours.totals)
        yield "node", *_node(theirs, ours)
        if theirs.devices and theirs.node == ours.node:
            yield "devices", theirs.devices, ours.devices
    else:
        yield "message", _at_any_node(theirs.message), _at_any_node(ours.message)
        if family == "hints":
            yield "requeued by", theirs.requeued_by, ours.requeued_by
    if theirs.victims or ours.victims:
        yield "nominated node", theirs.nominated, ours.nominated
        yield "victims", theirs.victims, ours.victims


def _scores(answer: Answer, plugin: str) -> dict[str, int]:
    """What the plugin adds for each node: 0 where it was not asked, as when its PreScore says Skip."""
    return dict.fromkeys(answer.totals, 0) | dict(answer.scores.get(plugin, {}))


def _at_any_node(message: str) -> str:
    """A plugin's error without the device at which it came up: which node's comes first is chance."""
    return _DEVICE.sub("<device>", message) if message.startswith("running ") else message


def _fitting(answer: Answer) -> list[str]:
    return sorted(answer.totals) or [answer.node]


def _node(theirs: Answer, ours: Answer) -> tuple[str, str]:
    """The nodes chosen; ours counts as theirs when its score is the highest as well."""
    tie = theirs.totals and ours.node in theirs.totals and theirs.totals[ours.node] == max(theirs.totals.values())
    return theirs.node, theirs.node if tie else ours.node
