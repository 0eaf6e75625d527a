"""Reads Kubernetes objects from files, as `kubectl get -o yaml` writes them; what is wrong has its line and column."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from podtrail_scheduler.configuration.document import Located, Repeated, parse_all
from podtrail_scheduler.configuration.errors import ConfigurationError, ConfigurationProblem
from podtrail_scheduler.objects import ApiObject, Pod
from podtrail_scheduler.objects.decoding import DECODERS, Misshapen
from podtrail_scheduler.objects.decoding.reading import Json, part, text

from .admission import LIMIT_RANGE, RUNTIME_CLASS, PodAdmission
from .api_defaults import PriorityClass, completed, decode_priority_class
from .field_names import unknown_fields

_LARGEST = 256 << 20
"""Bytes of a file: some ten thousand Pods."""
_VERSIONS = {kind: version for version, kind in DECODERS}
_PRIORITY_CLASS = ("scheduling.k8s.io/v1", "PriorityClass")
_KUBECTL = "kubectl get nodes,pods -A -o yaml writes it so"


@dataclass(slots=True)
class FileContents:
    """What a file holds."""

    objects: list[ApiObject] = field(default_factory=list)
    """Those that scheduling looks at."""
    classes: list[PriorityClass] = field(default_factory=list)
    wanted: dict[str, str] = field(default_factory=dict)
    """By key of each Pod without a priority the name of its PriorityClass; "": it names none."""
    admission: PodAdmission = field(default_factory=PodAdmission)
    """Its LimitRanges and RuntimeClasses."""
    written: dict[str, Json] = field(default_factory=dict)
    """By key the manifest of each Pod that no API server has created: without a uid."""
    unknown: list[str] = field(default_factory=list)
    """Where fields stand that this release does not know: `LINE:COLUMN: PATH`."""


def read_objects(path: str) -> FileContents:
    """Return what a file holds; objects that scheduling does not look at are left out.

    Raises:
        ValueError: It can't be read, or something in it can't be: `FILE:LINE:COLUMN: PATH: what`.
    """
    contents = FileContents()
    try:
        for document, repeated in parse_all(_text(path), path):
            for item, where, kind, version in _items(document, repeated):
                _take(contents, item, where, kind, version)
    except _Wrong as wrong:
        raise ValueError(wrong.problem.located(path)) from None
    except ConfigurationError as error:
        raise ValueError(str(error)) from None
    return contents


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


def _items(document: Located, repeated: list[Repeated]) -> Iterator[tuple[Located, str, str, str]]:
    """Yield each object of a document with its path, kind and version."""
    if document.value is None:
        return  # nothing between two `---`
    if repeated:
        raise _Wrong(f"key {repeated[0].key!r} is already set in this mapping", "", repeated[0], "keep one")
    _check_mapping(document, "")
    kind, version = _kind(document, "")
    if not kind.endswith("List"):
        yield document, "", kind, version
        return
    items = document.at("items")
    if not isinstance(items.value, list):
        raise _Wrong(f"a {kind} needs a list of items", "items", items)
    for number, item in enumerate(items.value):
        path = f"items[{number}]"
        _check_mapping(item, path)
        # What `kubectl get --raw` writes says it once, for all items.
        own = (kind.removesuffix("List"), version) if kind != "List" and not _says_kind(item) else _kind(item, path)
        yield item, path, *own


def _take(contents: FileContents, item: Located, path: str, kind: str, version: str) -> None:
    decoder = DECODERS.get((version, kind))
    if decoder is None and (version, kind) not in (_PRIORITY_CLASS, LIMIT_RANGE, RUNTIME_CLASS):
        _refuse_misspelt(item, path, kind, version)
        return  # a ConfigMap, a Deployment: nothing that scheduling looks at
    if not (name := item.at("metadata.name")).value or not isinstance(name.value, str):
        raise _Wrong(f"a {kind} needs a name", _joined(path, "metadata.name"), name)
    _check_fields(contents, item, path, kind)
    try:
        plain = item.plain
        if decoder is None:
            if (version, kind) == _PRIORITY_CLASS:
                contents.classes.append(decode_priority_class(plain))
            else:
                contents.admission.add(plain)
            return
        manifest = completed(kind, plain)
        made = decoder(manifest)
        contents.objects.append(made)
        if isinstance(made, Pod) and not part(plain, "metadata").get("uid"):
            contents.written[made.key] = manifest
        if isinstance(made, Pod) and plain["spec"].get("priority") is None:
            contents.wanted[made.key] = text(plain["spec"], "priorityClassName", "spec")
    except Misshapen as error:
        inside = ".".join(error.path)
        raise _Wrong(error.problem, _joined(path, inside), item.at(inside), "") from None
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise _Wrong(f"this {kind} can't be read: {error}", path, item) from None


def _check_fields(contents: FileContents, item: Located, path: str, kind: str) -> None:
    """Refuse misspelt fields; note those that resemble none."""
    for name, place, meant in unknown_fields(item, kind):
        if meant:
            problem = f"a {kind} has no such field there"
            raise _Wrong(problem, _joined(path, name), place, f"did you mean {meant}?")
        contents.unknown.append(f"{place.line}:{place.column}: {_joined(path, name)}")


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
