"""Logs on stderr: for people on a terminal, JSON lines otherwise (or as `service::telemetry::logs` says)."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}
_BIDI = (*range(0x200E, 0x2010), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_CONTROL |= {code: f"\\u{code:04x}" for code in _BIDI}
_BEYOND_JSON = {code: f"\\u{code:04x}" for code in (*range(127, 160), *_BIDI)}
"""Control characters that JSON lets stand as they are, but a terminal obeys."""


def _level(record: logging.LogRecord) -> str:
    return "warn" if record.levelno == logging.WARNING else record.levelname.lower()


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class ConsoleFormatter(logging.Formatter):
    """`12:30:45.123 info  otlp  message`; control characters in the message are shown, not obeyed."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, with the traceback behind it if there is one."""
        component = getattr(record, "component", "")
        message = record.getMessage().translate(_CONTROL)
        line = f"{_moment(record)[11:-1]} {_level(record):5} {f'{component}: ' if component else ''}{message}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One object a line with the Collector's keys `ts`, `level`, `msg`, and the component's id."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        entry = {"ts": _moment(record), "level": _level(record), "msg": record.getMessage()}
        for key in ("component", "pipeline"):
            if value := getattr(record, key, ""):
                entry[key] = value
        if record.exc_info:
            entry["stacktrace"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False).translate(_BEYOND_JSON)


def configure_logs(level: str = "info", encoding: Literal["console", "json"] | None = None) -> None:
    """Send the `podtrail` logger to stderr. `encoding` None: console on a terminal, JSON otherwise."""
    if encoding is None:
        encoding = "console" if sys.stderr.isatty() else "json"
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(ConsoleFormatter() if encoding == "console" else JsonFormatter())
    logger = logging.getLogger("podtrail")
    logger.handlers[:] = [handler]
    logger.setLevel(LEVELS[level])
    logger.propagate = False
