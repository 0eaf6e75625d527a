"""Logs on stderr: for people on a terminal, JSON lines otherwise (or as `service::telemetry::logs` says).

What libraries warn of stands there in the same form, what the event loop can tell nobody else, and what Python itself
would print: one line, one record.
"""

import asyncio
import errno
import json
import logging
import sys
import threading
import time
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, TextIO

from podtrail.component import LogLines
from podtrail.config.secret_keys import redacted

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}
_BIDI = (*range(0x200E, 0x2010), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_CONTROL |= {code: f"\\u{code:04x}" for code in _BIDI}
_BEYOND_JSON = {code: f"\\u{code:04x}" for code in (*range(127, 160), *_BIDI)}
"""Control characters that JSON lets stand as they are, but a terminal obeys."""
_LOG = logging.getLogger("podtrail")
_SILENCE_SECONDS = 10.0
"""Between two lines about connections that can't be accepted."""
_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


def _level(record: logging.LogRecord) -> str:
    return "warn" if record.levelno == logging.WARNING else record.levelname.lower()


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _library(record: logging.LogRecord) -> str:
    return "" if record.name.partition(".")[0] == "podtrail" else record.name


def _message(record: logging.LogRecord) -> str:
    """Return the message without users and queries of URLs, and without tokens: exceptions of libraries repeat them."""
    return redacted(record.getMessage())


class _Handler(logging.StreamHandler[TextIO]):
    """Ours, as against the handlers of whoever else is in the process."""


class ConsoleFormatter(logging.Formatter):
    """`12:30:45.123 info  otlp  message`; control characters in the message are shown, not obeyed."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, with the traceback behind it if there is one."""
        component = getattr(record, "component", "") or _library(record)
        several = record.args[0] if isinstance(record.args, tuple) and record.args else None
        lines = several.lines if isinstance(several, LogLines) else (_message(record),)
        message = "\n".join(line.translate(_CONTROL) for line in lines)
        line = f"{_moment(record)[11:-1]} {_level(record):5} {f'{component}: ' if component else ''}{message}"
        return f"{line}\n{redacted(self.formatException(record.exc_info))}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One object a line with the Collector's keys `ts`, `level`, `msg`, and the id of the component or who else."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        entry = {"ts": _moment(record), "level": _level(record), "msg": _message(record)}
        for key in ("component", "pipeline"):
            if value := getattr(record, key, ""):
                entry[key] = value
        if library := _library(record):
            entry["logger"] = library
        if record.exc_info:
            entry["stacktrace"] = redacted(self.formatException(record.exc_info))
        return json.dumps(entry, ensure_ascii=False).translate(_BEYOND_JSON)


def configure_logs(level: str = "info", encoding: Literal["console", "json"] | None = None) -> None:
    """Send the `podtrail` logger to stderr, and what others warn of. `encoding` None: JSON, but on a terminal."""
    if encoding is None:
        encoding = "console" if sys.stderr.isatty() else "json"
    handler = _Handler(sys.stderr)
    handler.setFormatter(ConsoleFormatter() if encoding == "console" else JsonFormatter())
    root = logging.getLogger()
    for logger in (_LOG, root):
        for former in [former for former in logger.handlers if isinstance(former, _Handler)]:
            logger.removeHandler(former)
        logger.addHandler(handler)
    root.setLevel(max(logging.WARNING, LEVELS[level]))
    _LOG.setLevel(LEVELS[level])
    _LOG.propagate = False


def log_what_python_prints() -> None:
    """Log Python's warnings, and errors that nobody catches: in threads of libraries, in finalizers. For a process."""
    logging.captureWarnings(True)
    threading.excepthook = lambda raised: _unhandled(
        f"a thread failed: {raised.thread.name if raised.thread else ''}", raised.exc_value, raised.exc_traceback
    )
    sys.unraisablehook = lambda raised: _unhandled(
        raised.err_msg or f"an error was ignored in {raised.object!r}", raised.exc_value, raised.exc_traceback
    )


def _unhandled(message: str, error: BaseException | None, trace: TracebackType | None) -> None:
    _LOG.error("%s", message, exc_info=None if error is None else (type(error), error, trace))


class LoopErrors:
    """An event loop's exception handler."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._said = -_SILENCE_SECONDS

    def __call__(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an error that no task reports; connections that can't be accepted at most every ten seconds."""
        error = context.get("exception")
        if not (isinstance(error, OSError) and error.errno in _EXHAUSTED):
            self._log.error("%s", context["message"], exc_info=error)
            return
        now = time.monotonic()
        if now - self._said >= _SILENCE_SECONDS:
            self._said = now
            self._log.error("connections have to wait: %s", error.strerror)
