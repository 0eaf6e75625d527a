"""Reads Kubernetes objects from files, as `kubectl get -o yaml` writes them; what is wrong has its line and column."""

from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from podtrail_scheduler.configuration.document import Located, Repeated, parse_all
from podtrail_scheduler.configuration.errors import ConfigurationError, ConfigurationProblem
from podtrail_scheduler.objects import ApiObject
from podtrail_scheduler.objects.decoding import DECODERS, Misshapen

_LARGEST = 256 << 20
"""Bytes of a file: some ten thousand Pods."""
_VERSIONS = {kind: version for version, kind in DECODERS}
_KUBECTL = "kubectl get nodes,pods -A -o yaml writes it so"


def read_objects(path: str) -> list[ApiObject]:
    """Return the objects of a file that scheduling looks at; others are left out.

    Raises:
        ValueError: It can't be read, or something in it can't be: `FILE:LINE:COLUMN: PATH: what`.
    """
    try:
        return [item for document, repeated in parse_all(_text(path), path) for item in _decoded(document, repeated)]
    except _Wrong as wrong:
        raise ValueError(wrong.problem.located(path)) from None
    except ConfigurationError as error:
        raise ValueError(str(error)) from None


class _Wrong(Exception):
    """What is wrong, and where."""

    def __init__(self, message: str, path: str, place: Located | Repeated, remedy: str = _KUBECTL) -> None:
        self.problem = ConfigurationProblem(message, path, place.line, place.column, remedy)


def _text(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            content = file.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ValueError(f"{path}: {reason}") from None
    if len(content) > _LARGEST:
        raise ValueError(f"{path}: larger than {_LARGEST >> 20} MiB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}:{line}: not UTF-8") from None


def _decoded(document: Located, repeated: list[Repeated]) -> Iterator[ApiObject]:
    if document.value is None:
        return  # nothing between two `---`
    if repeated:
        raise _Wrong(f"key {repeated[0].key!r} is already set in this mapping", "", repeated[0], "keep one")
    _check_mapping(document, "")
    kind, version = _kind(document, "")
    if not kind.endswith("List"):
        yield from _object(document, "", kind, version)
        return
    items = document.at("items")
    if not isinstance(items.value, list):
        raise _Wrong(f"a {kind} needs a list of items", "items", items)
    for number, item in enumerate(items.value):
        path = f"items[{number}]"
        _check_mapping(item, path)
        # What `kubectl get --raw` writes says it once, for all items.
        own = (kind.removesuffix("List"), version) if kind != "List" and not _says_kind(item) else _kind(item, path)
        yield from _object(item, path, *own)


def _object(item: Located, path: str, kind: str, version: str) -> Iterator[ApiObject]:
    decoder = DECODERS.get((version, kind))
    if decoder is None:
        _refuse_misspelt(item, path, kind, version)
        return  # a ConfigMap, a Deployment: nothing that scheduling looks at
    if not (name := item.at("metadata.name")).value or not isinstance(name.value, str):
        raise _Wrong(f"a {kind} needs a name", _joined(path, "metadata.name"), name)
    try:
        yield decoder(_completed(kind, item.plain))
    except Misshapen as error:
        inside = ".".join(error.path)
        raise _Wrong(error.problem, _joined(path, inside), item.at(inside), "") from None
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise _Wrong(f"this {kind} can't be read: {error}", path, item) from None


def _completed(kind: str, plain: dict[str, Any]) -> dict[str, Any]:
    """Return a Node with what an API server adds where nothing says how much of its capacity is allocatable."""
    status = plain.get("status")
    if kind == "Node" and isinstance(status, dict) and "allocatable" not in status and "capacity" in status:
        return {**plain, "status": {**status, "allocatable": status["capacity"]}}
    return plain


def _refuse_misspelt(item: Located, path: str, kind: str, version: str) -> None:
    if kind in _VERSIONS and version.rpartition("/")[0] == _VERSIONS[kind].rpartition("/")[0]:
        place = item.at("apiVersion")
        raise _Wrong(f"{kind} of {version!r} is not known", _joined(path, "apiVersion"), place, _VERSIONS[kind])
    close = get_close_matches(kind.capitalize(), _VERSIONS, 1, 0.8)
    if close and close[0] != kind and kind not in _VERSIONS:
        remedy = f"did you mean {close[0]}?"
        raise _Wrong(f"kind {kind!r} is not known", _joined(path, "kind"), item.at("kind"), remedy)


def _check_mapping(item: Located, path: str) -> None:
    if not isinstance(item.value, dict):
        article = "an" if item.kind[0] in "aeiou" else "a"
        raise _Wrong(f"an object is wanted, not {article} {item.kind}", path, item)


def _says_kind(item: Located) -> bool:
    return isinstance(item.value, dict) and "kind" in item.value


def _kind(item: Located, path: str) -> tuple[str, str]:
    assert isinstance(item.value, dict)
    for key in ("apiVersion", "kind"):
        found = item.value.get(key)
        if found is None or not isinstance(found.value, str) or not found.value:
            raise _Wrong(f"{key} is missing", _joined(path, key), found or item)
    return item.value["kind"].plain, item.value["apiVersion"].plain


def _joined(*path: str) -> str:
    return ".".join(part for part in path if part)
