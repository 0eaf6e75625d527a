"""Checks what plugins of others answer before it is used, so that nonsense fails an attempt and not the scheduler."""

import inspect
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from .extension_points import PermitResult, PostFilterResult, PreFilterResult
from .status import Code, Status, error

_MAY_BE: Mapping[str, tuple[type, ...]] = {
    "preFilter": (Status, PreFilterResult, type(None)),
    "postFilter": (Status, PostFilterResult),
    "permit": (Status, PermitResult, type(None)),
}
_logger = logging.getLogger("podtrail_scheduler.framework")
_STATUS = (Status, type(None))
_LONGEST_TEXT = 1024
"""Characters of an exception in a status, which goes into a condition and an Event of the Pod (limit of its note)."""
_OF_EACH_NODE: Mapping[str, tuple[type, ...]] = {"filter": _STATUS, "score": (int,)}


def checked(plugin: str, point: str, nodes: int, answer: Any) -> Any:
    """The answer; an Error that names the plugin, and a line in the log, when it is none for that point.

    Filter and Score answer for `nodes` nodes at once; 0: for any number.
    """
    wanted = _OF_EACH_NODE.get(point)
    if wanted is None or isinstance(answer, Status):
        wrong = _wrong(answer, _MAY_BE.get(point, _STATUS))
    elif not isinstance(answer, Sequence) or isinstance(answer, str):
        wrong = _wrong(answer, ())
    else:
        told = [text for each in answer if (text := _wrong(each, wanted))]
        wrong = told[0] if told else ""
        if not wrong and nodes and len(answer) != nodes:
            wrong = f"{len(answer)} answers for {nodes} nodes"
    if not wrong:
        return answer
    _logger.error("Plugin %s answered %s, which is no answer at %s", plugin, wrong, point)
    return error(f"plugin {plugin} answered {wrong}, which is no answer at {point}")


def in_words(raised: BaseException) -> str:
    """What an exception of somebody else's says of itself."""
    try:
        text = str(raised)
    except Exception as without:  # noqa: BLE001, its text is the plugin's code, too
        text = f"(no text: {type(without).__name__})"
    if len(text) > _LONGEST_TEXT:
        text = f"{text[:_LONGEST_TEXT]}… ({len(text):,} characters; all of it is in the log)"
    return f"{type(raised).__name__}: {text}"


def _wrong(answer: Any, may_be: tuple[type, ...]) -> str:
    """What is wrong, empty if nothing is."""
    if inspect.iscoroutine(answer):
        answer.close()
        return "a coroutine"
    if not isinstance(answer, may_be) or not _is_whole(answer):
        return (
            f"{type(answer).__name__} {answer!r:.80}"
            if type(answer).__module__ == "builtins"
            else type(answer).__name__
        )
    return ""


def _is_whole(answer: Any) -> bool:
    """Whether the parts of an answer are what they are declared to be."""
    match answer:
        case Status(code, reasons):
            texts = isinstance(reasons, tuple) and all(isinstance(each, str) for each in reasons)
            return isinstance(code, Code) and texts
        case PreFilterResult(names):
            return isinstance(names, frozenset) and all(isinstance(each, str) for each in names)
        case PostFilterResult(status, nominated):
            return _is_status(status) and (nominated is None or isinstance(nominated, str))
        case PermitResult(status, timeout):
            return _is_status(status) and isinstance(timeout, int)
    return True


def _is_status(answer: Any) -> bool:
    return isinstance(answer, _STATUS) and _is_whole(answer)
