"""Strict decoding of a document into the dataclasses of this package, with the errors of Kubernetes' JSON decoder.

Unknown fields and values of a wrong type are gathered; a duration that is none ends the decoding. Keys are gone through
in sorted order, as kube-scheduler converts YAML to JSON first.
"""

import base64
import binascii
import dataclasses
import difflib
import json
from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from .document import Located
from .errors import ConfigurationError, ConfigurationProblem
from .go_duration import parse_go_duration
from .wire import RAW, Nanoseconds, key_of

_BITS = {"int32": 32, "int64": 64}
_PACKAGES = {
    "LeaderElectionConfiguration": "v1alpha1",
    "ClientConnectionConfiguration": "v1alpha1",
}
_GO_NAMES = {"DefaultConstraint": "TopologySpreadConstraint", "Tracing": "TracingConfiguration"}

Decoded = TypeVar("Decoded")


@dataclasses.dataclass(frozen=True, slots=True)
class _DocumentPlace:
    """Where the decoder is: path in the document, fields as Go names them, and the struct around."""

    path: str = ""
    fields: tuple[str, ...] = ()
    struct: str = ""

    def key(self, struct: str, key: str) -> "_DocumentPlace":
        return _DocumentPlace(f"{self.path}.{key}" if self.path else key, (*self.fields, key), struct)

    def index(self, index: int) -> "_DocumentPlace":
        return _DocumentPlace(f"{self.path}[{index}]", self.fields, self.struct)


class ConfigurationDecoder:
    """Decodes one document; afterwards `unknown` has its unknown fields. `below` stands before paths in problems."""

    def __init__(self, file: str, below: str = "") -> None:
        self.unknown: list[ConfigurationProblem] = []
        self._wrong: list[ConfigurationProblem] = []
        self._file = file
        self._below = below

    def decode(self, kind: type[Decoded], document: Located, also: Sequence[str] = ("apiVersion", "kind")) -> Decoded:
        """The dataclass; keys in `also` are passed over.

        Raises:
            ConfigurationError: for values of a wrong type.
        """
        decoded: Decoded = self._struct(kind, document, _DocumentPlace(), also)
        if self._wrong:
            raise ConfigurationError(self._wrong[0].message, self._wrong, self._file)
        return decoded

    def _value(self, kind: Any, given: Located, place: _DocumentPlace) -> Any:
        annotation = ""
        if get_origin(kind) is Annotated:
            kind, annotation = get_args(kind)
        if annotation == RAW:
            return given.plain
        if isinstance(annotation, type):
            self._struct(annotation, given, place)
            return given.plain
        if dataclasses.is_dataclass(kind):
            return self._struct(kind, given, place)
        origin = get_origin(kind)
        if origin is tuple:
            (inner, _) = get_args(kind)
            if not isinstance(given.value, list):
                return self._mismatch(given, f"[]{_go_type(inner)}", place)
            return tuple(
                _zero(inner) if each.value is None else self._value(inner, each, place.index(number))
                for number, each in enumerate(given.value)
            )
        if origin is Mapping:
            return self._labels(given, place)
        return self._scalar(kind, str(annotation), given, place)

    def _struct(self, kind: Any, given: Located, place: _DocumentPlace, also: Sequence[str] = ()) -> Any:
        if given.value is None:
            return kind()
        if not isinstance(given.value, dict):
            return self._mismatch(given, _go_type(kind), place)
        hints = get_type_hints(kind, include_extras=True)
        fields = {key_of(each): each for each in dataclasses.fields(kind)}
        found = {}
        for key in sorted(given.value):
            value = given.value[key]
            if key not in fields:
                if key not in also:
                    where = given.keys.get(key, (value.line, value.column))
                    self._note_unknown(place.key("", key).path, where, fields)
                continue
            name = fields[key].name
            if value.value is not None or hints[name] == Nanoseconds:
                found[name] = self._value(_present(hints[name]), value, place.key(_go_name(kind), key))
        return kind(**found)

    def _labels(self, given: Located, place: _DocumentPlace) -> Any:
        if not isinstance(given.value, dict):
            return self._mismatch(given, "map[string]string", place)
        return {key: self._scalar(str, "", each, place) for key, each in sorted(given.value.items())}

    def _scalar(self, kind: type, annotation: str, given: Located, place: _DocumentPlace) -> Any:
        value = given.value
        if annotation == "duration":
            return self._duration(given, place)
        if kind is bytes:
            return self._bytes(given, place)
        if kind is int and annotation in _BITS and isinstance(value, int | float) and not isinstance(value, bool):
            limit = 2 ** (_BITS[annotation] - 1)
            if isinstance(value, int) and -limit <= value < limit:
                return value
            return self._mismatch(given, annotation, place, f"number {json.dumps(value)}")
        if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if kind not in (str, bool) or type(value) is not kind:
            return self._mismatch(given, annotation or _go_type(kind), place)
        return value

    def _duration(self, given: Located, place: _DocumentPlace) -> Any:
        remedy = "write a number with its unit, such as 500ms, 15s or 1h30m"
        text = "" if given.value is None else given.value
        if not isinstance(text, str):
            self._end(self._problem(_mismatched(given, "string", place), given, place, remedy))
        try:
            return parse_go_duration(text)
        except ValueError as error:
            self._end(self._problem(str(error), given, place, remedy))

    def _bytes(self, given: Located, place: _DocumentPlace) -> Any:
        if not isinstance(given.value, str):
            return self._mismatch(given, "[]uint8", place)
        try:
            return base64.b64decode(given.value, validate=True)
        except binascii.Error as error:
            problem = self._problem(f"illegal base64 data: {error}", given, place, "PEM in base64 is wanted here")
            self._wrong.append(problem)
        return b""

    def _note_unknown(self, path: str, where: tuple[int, int], known: Mapping[str, object]) -> None:
        near = difflib.get_close_matches(path.rpartition(".")[2], known, 1, 0.6)
        remedy = f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}"
        message = f"unknown field {json.dumps(path)}"
        self.unknown.append(ConfigurationProblem(message, self._full(path), *where, remedy))

    def _mismatch(self, given: Located, wanted: str, place: _DocumentPlace, found: str = "") -> None:
        message = _mismatched(given, wanted, place, found)
        self._wrong.append(self._problem(message, given, place, f"{wanted} is wanted here"))

    def _problem(self, message: str, given: Located, place: _DocumentPlace, remedy: str) -> ConfigurationProblem:
        return ConfigurationProblem(message, self._full(place.path), given.line, given.column, remedy)

    def _end(self, problem: ConfigurationProblem) -> NoReturn:
        raise ConfigurationError(problem.message, [*self._wrong, problem], self._file)

    def _full(self, path: str) -> str:
        return f"{self._below}.{path}" if self._below and path else self._below or path


_DEBUGGING = frozenset({"enableProfiling", "enableContentionProfiling"})
"""Fields that stand in an embedded struct in Go."""


def _mismatched(given: Located, wanted: str, place: _DocumentPlace, found: str = "") -> str:
    fields = ".".join(place.fields)
    if place.struct == "KubeSchedulerConfiguration" and fields in _DEBUGGING:
        fields = f"DebuggingConfiguration.{fields}"
    target = f"struct field {place.struct}.{fields}" if place.struct else "value"
    return f"json: cannot unmarshal {found or given.kind} into Go {target} of type {wanted}"


def _present(kind: Any) -> Any:
    """The type without None."""
    if get_origin(kind) in (Union, UnionType):
        (inner,) = (each for each in get_args(kind) if each is not NoneType)
        return inner
    return kind


def _zero(kind: Any) -> Any:
    bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return bare()


def _go_name(kind: type) -> str:
    return _GO_NAMES.get(kind.__name__, kind.__name__)


def _go_type(kind: Any) -> str:
    if get_origin(kind) is Annotated:
        return str(get_args(kind)[1])
    if kind in (str, bool, float):
        return {str: "string", bool: "bool", float: "float32"}[kind]
    return f"{_PACKAGES.get(kind.__name__, 'v1')}.{_go_name(kind)}"
