"""The line head of Kubernetes components: `I1121 06:04:54.407601    9552 trace.go:236] `.

Only the first line of a record carries it, as in klog.
"""

import json
import logging
from datetime import UTC, datetime

_SEVERITIES = {logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}


class KlogFormatter(logging.Formatter):
    """Formats records in klog's text format; a logger that wants another source gives it as `extra={"source": ...}`."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802, the name is logging's
        """The record's message behind its head, time in UTC."""
        moment = datetime.fromtimestamp(record.created, UTC)
        severity = _SEVERITIES.get(record.levelno, "I")
        source = getattr(record, "source", f"{record.filename}:{record.lineno}")
        return f"{severity}{moment:%m%d %H:%M:%S.%f} {record.process or 0:7d} {source}] {record.message}"


def structured(message: str, **values: object) -> str:
    """A message as klog's InfoS and ErrorS print it: values of several lines stand between `=<` and ` >`."""
    parts = [json.dumps(message)]
    for key, value in values.items():
        if isinstance(value, str) and "\n" in value:
            lines = "".join(f"\t{line}\n" for line in value.splitlines())
            parts.append(f"{key}=<\n{lines} >")
        else:
            parts.append(f"{key}={json.dumps(value, ensure_ascii=False)}")
    return " ".join(parts)


def info(logger: logging.Logger, verbosity: int, message: str, **values: object) -> None:
    """Logs at klog's V(`verbosity`), which is Python's level INFO - `verbosity`."""
    level = logging.INFO - verbosity
    if logger.isEnabledFor(level):
        logger.log(level, "%s", structured(message, **values), stacklevel=2)
