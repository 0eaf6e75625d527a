"""`OTEL_EXPORTER_OTLP_…` as defaults below what the configuration says (OpenTelemetry's specification of exporters).

A variable for traces (`OTEL_EXPORTER_OTLP_TRACES_…`) goes before the one for all signals; an empty one is absent.
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from podtrail.config.types import MILLISECOND

_PREFIX = "OTEL_EXPORTER_OTLP_"
_WHOLE = re.compile(r"[0-9]+")


def from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return what the environment sets, under the configuration's keys, as OTLP's exporter specification names it.

    Any of `endpoint`, `traces_endpoint`, `tls`, `headers`, `compression` and `timeout` (nanoseconds). `endpoint` is the
    one for all signals, `traces_endpoint` the one for traces alone.

    Raises:
        ValueError: a variable that can't be read; the text names it.
    """
    found: dict[str, Any] = {
        "endpoint": environ.get(f"{_PREFIX}ENDPOINT", "").strip(),
        "traces_endpoint": environ.get(f"{_PREFIX}TRACES_ENDPOINT", "").strip(),
        "tls": _tls(environ),
        "headers": _headers(environ),
        "compression": _lookup(environ, "COMPRESSION")[1],
        "timeout": _timeout(environ),
    }
    return {key: value for key, value in found.items() if value}


def merged_with_environment(data: Any, environ: Mapping[str, str]) -> Any:
    """Return raw configuration with the environment's values for keys that it leaves out.

    An endpoint of either kind in the configuration goes before both of the environment's.
    """
    if not isinstance(data, Mapping):
        return data
    given = {key: value for key, value in data.items() if value is not None}
    empty = {key: None for key, value in data.items() if value is None}
    defaults = from_environment(environ)
    if "endpoint" in given or "traces_endpoint" in given:
        defaults.pop("endpoint", None)
        defaults.pop("traces_endpoint", None)
    return {**empty, **defaults, **given}


def _lookup(environ: Mapping[str, str], name: str) -> tuple[str, str]:
    for variable in (f"{_PREFIX}TRACES_{name}", f"{_PREFIX}{name}"):
        if value := environ.get(variable, "").strip():
            return variable, value
    return f"{_PREFIX}{name}", ""


def _tls(environ: Mapping[str, str]) -> dict[str, Any]:
    variable, insecure = _lookup(environ, "INSECURE")
    if insecure.lower() not in ("", "true", "false"):
        raise ValueError(f"the environment variable {variable} is {insecure!r}: write true or false")
    found: dict[str, Any] = {
        "insecure": insecure.lower() == "true",
        "ca_file": _lookup(environ, "CERTIFICATE")[1],
        "cert_file": _lookup(environ, "CLIENT_CERTIFICATE")[1],
        "key_file": _lookup(environ, "CLIENT_KEY")[1],
    }
    return {key: value for key, value in found.items() if value}


def _headers(environ: Mapping[str, str]) -> dict[str, str]:
    variable, text = _lookup(environ, "HEADERS")
    found: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"the environment variable {variable} is no list of name=value, parted by commas")
        found[unquote(key.strip())] = unquote(value.strip())
    return found


def _timeout(environ: Mapping[str, str]) -> int:
    variable, text = _lookup(environ, "TIMEOUT")
    if text and not _WHOLE.fullmatch(text):
        raise ValueError(f"the environment variable {variable} is {text!r}: write whole milliseconds")
    return int(text or 0) * MILLISECOND
