"""Tells requests of signals that podtrail does not handle from requests of traces: they are counted and skipped."""

from typing import Final

UNKNOWN: Final = "unknown"
"""What a request is that has keys, and none that OTLP has."""
_SIGNALS: Final = {
    f"{level}{signal.capitalize() if level.isalpha() else signal}": signal
    for signal in ("logs", "metrics", "profiles")
    for level in ("resource", "resource_", "scope", "scope_")
}
_TRACES: Final = ("resourceSpans", "resource_spans")


def signal_of(keys: object) -> str:
    """Return `logs`, `metrics` or `profiles` for an object that is a request of that signal, or a part of one."""
    if not isinstance(keys, dict):
        return ""
    return next((signal for key, signal in _SIGNALS.items() if key in keys), "")


def skipped_signal(request: object) -> str:
    """Return the signal of what a request in OTLP JSON holds beside spans; "" where it holds spans or nothing."""
    if signal := signal_of(request):
        return signal
    if not isinstance(request, dict) or not request or any(key in request for key in _TRACES):
        return ""
    return UNKNOWN


def skipped_words(signal: str) -> str:
    """Return what is said of a request of another signal."""
    what = "without resourceSpans" if signal == UNKNOWN else f"of {signal}"
    return f"skipped a request {what}: only traces are handled here"
