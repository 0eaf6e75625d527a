"""Requests of signals that podtrail does not handle: they are counted and skipped."""

import json
import re
from typing import Final

_KEYS: Final = {
    spelled: signal.lower() for signal in ("Logs", "Metrics", "Profiles") for spelled in (f"resource{signal}",)
}
_SIGNALS: Final = {**_KEYS, **{f"resource_{signal}": signal for signal in _KEYS.values()}}
_ANY: Final = re.compile("|".join(f'"{key}"' for key in _SIGNALS).encode())


def signal_of(keys: object) -> str:
    """Return `logs`, `metrics` or `profiles` for an object that is a request of that signal, or a part of one."""
    if not isinstance(keys, dict):
        return ""
    scopes = {key.replace("resource", "scope"): signal for key, signal in _SIGNALS.items()}
    return next((signal for key, signal in (*_SIGNALS.items(), *scopes.items()) if key in keys), "")


def other_signal(raw: bytes) -> str:
    """Return the signal of a request in OTLP JSON, if it is `logs`, `metrics` or `profiles`; "" for all else."""
    if not _ANY.search(raw):
        return ""
    try:
        return signal_of(json.loads(raw))
    except (ValueError, RecursionError):
        return ""
