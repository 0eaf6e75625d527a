"""The line head of Kubernetes components: `I1121 06:04:54.407601    9552 trace.go:236] `.

Only the first line of a record carries it, as in klog.
"""

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
