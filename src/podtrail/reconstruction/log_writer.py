"""Finds who wrote a line of a log in which several schedulers are: what collectors write ahead of it, or beside it."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

_NAME: Final = rb"([A-Za-z0-9][\w./-]{0,255})"
_AHEAD: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rb"\[pod/([^\]\s]{1,255})\]",  # kubectl logs --prefix
        rb"^" + _NAME + rb"\s+\| ",  # docker compose
        rb"^" + _NAME + rb"\[[\w.-]+\]: $",  # kail
        rb"([\w.-]{1,255}) [\w.@-]+\[\d+\]: $",  # syslog
        rb"^([a-z0-9][a-z0-9.-]{0,252}) [a-z][a-z0-9.-]* $",  # stern
        rb"^(\S{0,255}?(?:/|\.[A-Za-z])\S{0,255}?)[:-](?:\d+[:-])?$",  # grep
        rb"\{[^}]{0,512}?\b(?:pod|pod_name|instance|host)=\"([^\"]{1,255})\"[^}]{0,512}\} $",  # logcli
        rb"\d[\d:.+-]{12,30}Z? ([a-z][\w.-]{0,255}) $",  # aws logs tail
    )
)
_KEYS: Final = ("pod_name", "podName", "pod", "logStreamName", "_HOSTNAME", "hostname", "host", "Computer")
_WITHIN: Final = ("kubernetes", "resource", "labels", "stream", "fields")
_LONGEST: Final = 256


@lru_cache(maxsize=256)
def writer_ahead(prefix: bytes) -> str:
    """Return who wrote a line, by what is ahead of it; "" if that does not say it."""
    found = next((found for pattern in _AHEAD if (found := pattern.search(prefix))), None)
    return found[1].decode("utf-8", "replace") if found else ""


def writer_beside(told: Mapping[str, Any], *, within: bool = False) -> str:
    """Return who wrote the line in a record of a collector, by its other keys; "" if they do not say it.

    Args:
        told: The record.
        within: Whether it is a part of one, which describes the sender.
    """
    own = () if "msg" in told else _KEYS  # klog's JSON has the Pod that the line is about
    for key in own:
        value = told.get(key)
        if within and isinstance(value, Mapping):
            value = value.get("name")
        if isinstance(value, str):
            return value[:_LONGEST]
    nested = (told[key] for key in _WITHIN if isinstance(told.get(key), Mapping))
    return next((writer for each in nested if (writer := writer_beside(each, within=True))), "")
