"""Functions that read text of a known form: JSON, pairs of keys and values, CSV, URLs, named groups of a pattern."""

import csv
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from podtrail.config.re2 import NamedGroups
from podtrail.otlp.remembering import remembering
from podtrail_processors.ottl.functions.lists import check_delimiters
from podtrail_processors.ottl.functions.parameters import Function, Parameter, text
from podtrail_processors.ottl.values.errors import EvaluationError

_MOST_CHARACTERS = 2**20
_MOST_NESTED = 64
_MODES = ("strict", "lazyQuotes", "ignoreQuotes")
_groups = remembering(64)(NamedGroups)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


@lru_cache(maxsize=64)
def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(parse_int=float, parse_constant=_no_constant)


def _parse_json(target: str) -> object:
    if len(target) > _MOST_CHARACTERS:
        raise EvaluationError(f"JSON of more than {_MOST_CHARACTERS} characters is not read")
    try:
        found: object = _decoder().decode(target)
    except (ValueError, RecursionError) as error:
        raise EvaluationError(f"no JSON: {error}") from None
    if target.count("[") + target.count("{") > _MOST_NESTED:
        _check_nesting(found)
    return found


def _check_nesting(value: object) -> None:
    level = [value]
    for _ in range(_MOST_NESTED):
        level = [part for outer in level for part in _parts(outer)]
        if not level:
            return
    raise EvaluationError(f"JSON nested deeper than {_MOST_NESTED} is not read")


def _parts(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _parse_key_value(target: str, delimiter: str = "=", pair_delimiter: str = " ") -> dict[str, object]:
    if not target:
        raise EvaluationError("there are no pairs in an empty string")
    found: dict[str, object] = {}
    for pair in _split_outside_quotes(target, pair_delimiter):
        key, separator, value = pair.partition(delimiter)
        if not separator:
            raise EvaluationError(f"{pair[:40]!r} is no pair of key and value")
        found[key.strip()] = value.strip()
    return found


def _split_outside_quotes(target: str, delimiter: str) -> list[str]:
    """Return what stands between delimiters, empty parts left out. Delimiters in quotes do not count."""
    found: list[str] = []
    current: list[str] = []
    quote, at = "", 0
    while at < len(target):
        character = target[at]
        if not quote and target.startswith(delimiter, at):
            found.append("".join(current))
            current, at = [], at + len(delimiter)
            continue
        escaped = character == "\\" and at + 1 < len(target)
        if not escaped and character in (quote or "\"'"):
            quote = "" if quote else character
        else:
            current.append(target[at : at + 1 + escaped])
        at += 1 + escaped
    if quote:
        raise EvaluationError("a quote is not closed")
    return [part for part in [*found, "".join(current)] if part]


def _parse_csv(
    target: str, headers: str, delimiter: str = ",", header_delimiter: str | None = None, mode: str = "strict"
) -> dict[str, object]:
    names = headers.split(header_delimiter if header_delimiter is not None else delimiter)
    row = target.strip("\r\n")
    if mode == "ignoreQuotes":
        fields = row.split(delimiter)
    else:
        try:
            (fields,) = csv.reader([row], delimiter=delimiter, strict=mode == "strict")
        except (csv.Error, ValueError) as error:
            raise EvaluationError(f"no row of CSV: {error}") from None
    if len(fields) != len(names):
        raise EvaluationError(f"{len(fields)} fields under {len(names)} headers")
    return dict(zip(names, fields, strict=True))


def _check_csv(constants: Mapping[str, object]) -> None:
    for name in ("delimiter", "header_delimiter"):
        delimiter = constants.get(name)
        if isinstance(delimiter, str) and len(delimiter) != 1:
            raise ValueError("a delimiter is one character")
    if constants.get("mode", "strict") not in _MODES:
        raise ValueError(f"the mode must be one of {', '.join(_MODES)}")


def _extract_patterns(target: str, pattern: str) -> dict[str, object]:
    try:
        return dict(_groups(pattern).find(target) or {})
    except ValueError as error:
        raise EvaluationError(str(error)) from None


def _check_groups(constants: Mapping[str, object]) -> None:
    pattern = constants.get("pattern")
    if isinstance(pattern, str) and not _groups(pattern):
        raise ValueError("the pattern has no named group")


def _url(uri: str) -> dict[str, object]:
    """Return the parts of a URL under the names of the semantic conventions."""
    if not uri:
        raise EvaluationError("an empty string is no URL")
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError as error:
        raise EvaluationError(f"no URL: {error}") from None
    found: dict[str, object] = {"url.path": unquote(parts.path), "url.original": uri}
    if parts.hostname:
        found["url.domain"] = parts.hostname
    if parts.scheme:
        found["url.scheme"] = parts.scheme
    if port is not None:
        found["url.port"] = port
    if parts.query:
        found["url.query"] = parts.query
    if parts.fragment:
        found["url.fragment"] = parts.fragment
    if parts.username is not None:
        found["url.username"] = unquote(parts.username)
        found["url.user_info"] = parts.netloc.rpartition("@")[0]
    if parts.password is not None:
        found["url.password"] = unquote(parts.password)
    _, dot, extension = parts.path.rpartition("/")[2].rpartition(".")
    if dot and extension:
        found["url.extension"] = extension
    return found


_TARGET = Parameter("target", text)

FUNCTIONS = (
    Function("ExtractPatterns", (_TARGET, Parameter("pattern", text)), _extract_patterns, _check_groups),
    Function(
        "ParseCSV",
        (
            _TARGET,
            Parameter("headers", text),
            Parameter("delimiter", text, True),
            Parameter("header_delimiter", text, True),
            Parameter("mode", text, True),
        ),
        _parse_csv,
        _check_csv,
    ),
    Function("ParseJSON", (_TARGET,), _parse_json),
    Function(
        "ParseKeyValue",
        (_TARGET, Parameter("delimiter", text, True), Parameter("pair_delimiter", text, True)),
        _parse_key_value,
        check_delimiters,
    ),
    Function("URL", (Parameter("uri", text),), _url),
)
"""Functions that read text of a known form."""
