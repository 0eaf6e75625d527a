"""What a scheduler did with the Pods of a case, and how that is kept in a file."""

import gzip
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

RECORDED = Path(__file__).parents[2] / "data" / "differential" / "kube-scheduler-v1.37.1.jsonl.gz"

_NONE: Mapping[str, Any] = MappingProxyType({})

Scores = Mapping[str, int]
"""By node."""


class Answer(NamedTuple):
    """What became of one Pod."""

    pod: str
    outcome: str
    """bound, chosen (a node, but the binding cannot end here), unschedulable, error, gated."""
    node: str = ""
    """The node that was chosen."""
    evaluated: int = 0
    """How many nodes were looked at, of a Pod that found one."""
    fitting: int = 0
    """How many nodes fitted."""
    scores: Mapping[str, Scores] = _NONE
    """By plugin, weighted. Nothing when fewer than two nodes fitted."""
    totals: Scores = _NONE
    """By node that fitted, when there were at least two."""
    message: str = ""
    """Why it was not scheduled."""
    nominated: str = ""
    """The node on which room is made."""
    victims: tuple[str, ...] = ()
    """The Pods that were made to terminate, sorted; those that did so before are not among them."""
    requeued_by: str = ""
    """The event that had it tried again, of a Pod that a change of the cluster found waiting."""
    devices: Mapping[str, tuple[str, ...]] = _NONE
    """By claim: the devices that were allocated, sorted: `request pool/device` and what is used of its capacity."""


class Answers(NamedTuple):
    """Those to one case."""

    case: str
    digest: str
    """The case's when it was recorded."""
    steps: tuple[Answer, ...]
    order: tuple[str, ...] = ()
    """In which order the Pods were attempted, where that is the question."""


def write(path: Path, answers: Iterable[Answers]) -> None:
    """One line a case; the same answers give the same bytes."""
    lines = [json.dumps(_as_json(each), separators=(",", ":")) + "\n" for each in answers]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))


@cache
def read(path: Path = RECORDED) -> dict[str, Answers]:
    """By the name of the case."""
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    return {each.case: each for each in map(_from_json, map(json.loads, lines))}


def _as_json(answers: Answers) -> dict[str, Any]:
    steps = [{key: value for key, value in step._asdict().items() if value} for step in answers.steps]
    return {**answers._asdict(), "steps": steps}


def _from_json(read: dict[str, Any]) -> Answers:
    steps = tuple(_answer(step) for step in read["steps"])
    return Answers(read["case"], read["digest"], steps, tuple(read["order"]))


def _answer(step: dict[str, Any]) -> Answer:
    step["victims"] = tuple(step.get("victims", ()))
    step["devices"] = {claim: tuple(devices) for claim, devices in step.get("devices", {}).items()}
    return Answer(**step)
