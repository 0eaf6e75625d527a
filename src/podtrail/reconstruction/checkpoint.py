"""What survives a restart of podtrail: until when attempts were told, and how many of each Pod that still waits."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from podtrail.reconstruction.pods import Incarnation

_VERSION: Final = 1
_AHEAD: Final = 3_600_000_000_000
"""Nanoseconds by which the scheduler's clock may be ahead of ours."""


def write_checkpoint(
    told_until: int, pods: Iterable[Incarnation], covered: int, offsets: Mapping[str, int]
) -> dict[str, Any]:
    """Return a checkpoint for JSON; times as digits.

    Args:
        told_until: Until when attempts were told, Unix nanoseconds.
        pods: The known Pods.
        covered: Since when the log tells of all attempts.
        offsets: How far the local times of each log are ahead of UTC, in nanoseconds.
    """
    return {
        "version": _VERSION,
        "toldUntilUnixNano": str(told_until),
        "clockOffsetsNano": {source: str(offset) for source, offset in offsets.items()},
        "pods": [
            {
                "pod": pod.pod,
                "uid": pod.uid,
                "since": str(pod.since),
                "created": str(pod.created),
                "until": str(pod.until),
                "attempts": pod.attempts,
                "toldUnixNano": str(pod.told),
                "last": (pod.last or b"").hex(),
                "whole": pod.whole(covered),
            }
            for pod in pods
            if pod.uid and _matters(pod, told_until)
        ],
    }


def _matters(pod: Incarnation, told_until: int) -> bool:
    """Say whether more may be to tell of a Pod, or what was told is later than that of others."""
    over = pod.until <= told_until or (pod.node and pod.seen <= told_until)
    return pod.told > told_until or not over


def read_told_until(checkpoint: Mapping[str, Any], now: int) -> int:
    """Return until when attempts were told, Unix nanoseconds.

    Raises:
        ValueError: it is no checkpoint of ours.
    """
    if checkpoint.get("version") != _VERSION:
        raise ValueError(f"a checkpoint of version {checkpoint.get('version')!r}; {_VERSION} is known")
    try:
        told_until = int(checkpoint["toldUntilUnixNano"])
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ValueError("a checkpoint without a time in toldUntilUnixNano") from None
    if told_until > now + _AHEAD:
        raise ValueError("a checkpoint of the future: what happens until then would never be told")
    return told_until


def read_offsets(checkpoint: Mapping[str, Any]) -> dict[str, int]:
    """Return how far the local times of each log were ahead of UTC, in nanoseconds.

    Raises:
        ValueError: they are damaged.
    """
    try:
        return {str(source): int(offset) for source, offset in checkpoint.get("clockOffsetsNano", {}).items()}
    except (AttributeError, TypeError, ValueError):
        raise ValueError("a checkpoint with damaged clockOffsetsNano") from None


def read_pods(checkpoint: Mapping[str, Any], told_until: int) -> Iterator[Incarnation]:
    """Yield the Pods of a checkpoint.

    Raises:
        ValueError: one is damaged.
    """
    pods = checkpoint.get("pods", [])
    if not isinstance(pods, list):
        raise ValueError("a checkpoint whose pods are no list")
    for number, told in enumerate(pods):
        try:
            pod = Incarnation(str(told["pod"]), str(told["uid"]), int(told["since"]))
            pod.created = int(told["created"])
            pod.until = int(told["until"])
            pod.attempts = int(told["attempts"])
            pod.told = pod.told_before = int(told["toldUnixNano"])
            pod.last = bytes.fromhex(told["last"]) or None
            pod.whole_until = told_until if told["whole"] else 0
        except (KeyError, TypeError, ValueError, OverflowError):
            raise ValueError(f"a checkpoint with a damaged Pod, number {number}") from None
        yield pod
