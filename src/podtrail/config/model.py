"""The base of every configuration model: frozen, no unknown keys, and nothing converted behind the user's back.

As in the Collector, `"10"` is no number, `1` is no boolean. A key without a value has its default, and a section that
is off unless it is named (`grpc:`) the defaults of its keys. One text for a list of texts is split at its commas.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetCoreSchemaHandler, SecretStr, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_before_validator_function

Secret = SecretStr
"""Text that is never shown: not in a repr, not by `print-config`. Read it with `.get_secret_value()`."""


def _by_name(headers: object) -> object:
    """Return a list of `name` and `value` as a map, anything else as it is."""
    if not isinstance(headers, list) or not all(isinstance(each, Mapping) for each in headers):
        return headers
    if odd := [each for each in headers if set(each) != {"name", "value"}]:
        raise ValueError(f"item {headers.index(odd[0]) + 1} of the list must have name and value, and nothing else")
    found = {each["name"]: each["value"] for each in headers}
    if len(found) < len(headers):
        raise ValueError("has a name twice: give each header once")
    return found


Headers = Annotated[dict[str, Secret], BeforeValidator(_by_name)]
"""Names and values of headers that are sent along, as a map or a list; values are secrets, as in the Collector."""

WarningPath = tuple[str | int, ...]
"""Where in a component's own configuration a warning belongs: keys and list indexes."""

_EXACT = frozenset({"int", "float", "bool"})
_NO_SCHEMA = frozenset({"default", "metadata", "serialization", "config"})
_BY_NAME = frozenset({"fields", "choices"})  # their keys are names given by a model, not the schema's own


def _whole(value: object) -> object:
    """Return a number without a fraction (`1e3`, `1000.0`) as the whole number that it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _make_exact(schema: Any, of: type[BaseModel]) -> None:
    """Make numbers and booleans strict wherever they stand in a model's core schema; containers stay lenient."""
    if isinstance(schema, list | tuple):
        for item in schema:
            _make_exact(item, of)
    elif isinstance(schema, dict):
        kind = schema.get("type")
        if kind == "model" and schema["cls"] is not of and issubclass(schema["cls"], Model):
            return  # was made exact when it was built
        if kind in _EXACT:
            schema["strict"] = True
        if kind == "int":
            exact = dict(schema)
            schema.clear()
            schema.update(no_info_before_validator_function(_whole, exact))
            return
        for key, value in schema.items():
            if key in _BY_NAME and isinstance(value, dict):
                _make_exact(list(value.values()), of)
            elif key not in _NO_SCHEMA:
                _make_exact(value, of)


def _is_off_unless_named(field: FieldInfo) -> bool:
    """Tell whether a key holds a section that has no settings of its own accord."""
    alternatives = get_args(field.annotation) or (field.annotation,)
    is_section = any(isinstance(one, type) and issubclass(one, BaseModel) for one in alternatives)
    return is_section and (field.is_required() or (field.default is None and field.default_factory is None))


def _is_list_of_texts(field: FieldInfo) -> bool:
    """Tell whether a key holds a list of texts: one text is then split at its commas, as the Collector does."""
    lists = [one for one in (field.annotation, *get_args(field.annotation)) if get_origin(one) in (list, tuple)]
    items = [item for one in lists for item in get_args(one) if item is not Ellipsis]
    bare = [get_args(item)[0] if get_origin(item) is Annotated else item for item in items]
    return bool(bare) and all(item is str or get_origin(item) is Literal for item in bare)


class Model(BaseModel):
    """Base of every configuration. Lists may fill tuples, but scalars are never converted into one another.

    A subclass may define `warnings(self) -> list[tuple[WarningPath, str]]`: what is legal but hardly meant.
    """

    of_the_collector: ClassVar[Mapping[str, str]] = {}
    """Keys that the Collector has here and podtrail does not: what to do instead."""
    harmless: ClassVar[frozenset[str]] = frozenset()
    """Those of them that are accepted with a warning: without them a configuration does what it is meant to."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=False, allow_inf_nan=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[BaseModel], handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        _make_exact(schema, source)
        return schema

    @model_validator(mode="before")
    @classmethod
    def _null_means_default(cls, data: Any) -> Any:
        if cls.harmless and isinstance(data, Mapping):
            data = {key: value for key, value in data.items() if key not in cls.harmless}
        if not isinstance(data, Mapping) or not any(value is None or isinstance(value, str) for value in data.values()):
            return data
        fields = {name: field for own, field in cls.model_fields.items() for name in (own, field.alias or own)}
        given: dict[Any, Any] = {}
        for key, value in data.items():
            field = fields.get(key)
            if isinstance(value, str) and field is not None and _is_list_of_texts(field):
                given[key] = [part.strip() for part in value.split(",")] if value else []
            elif value is not None or (field is None and key not in cls.of_the_collector):
                given[key] = value
            elif field is not None and _is_off_unless_named(field):
                given[key] = {}
        return given

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Return what is legal but hardly meant, each with the path of the key below this model."""
        return []
