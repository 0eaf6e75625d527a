"""The configuration of `attributes`: the Collector's keys, for spans."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from podtrail.config.mistakes import below, each, together
from podtrail.config.re2 import NamedGroups, finder
from podtrail.config.types import Model, WarningPath
from podtrail.otlp import KINDS

SPAN_KINDS = tuple(f"SPAN_KIND_{name.upper()}" for name in KINDS)
_SOURCES = ("value", "from_attribute", "default_value")
_USES = {
    "insert": frozenset(_SOURCES),
    "update": frozenset(_SOURCES),
    "upsert": frozenset(_SOURCES),
    "delete": frozenset({"pattern"}),
    "hash": frozenset({"pattern"}),
    "extract": frozenset({"pattern"}),
    "convert": frozenset({"converted_type"}),
}
"""What each action takes beside a key."""


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _expression(text: str) -> str:
    if text:
        finder([text])
    return text


def _writable(value: Any) -> Any:
    """Refuse what no attribute can hold."""
    match value:
        case None | bool() | str() | float():
            return value
        case int() if -(2**63) <= value < 2**63:
            return value
        case int():
            raise ValueError("does not fit 64 bits")
        case list():
            return [_writable(item) for item in value]
        case dict() if all(isinstance(key, str) for key in value):
            return {key: _writable(item) for key, item in value.items()}
    raise ValueError("must be text, a number, a boolean, or a list or map of these")


Expression = Annotated[str, AfterValidator(_expression)]
AttributeValue = Annotated[Any, AfterValidator(_writable)]


class AttributeAction(Model):
    """What is done with attributes, in the order of the list."""

    key: str = Field("", description="The attribute; `delete` and `hash` may do without it if they have a `pattern`.")
    action: Annotated[
        Literal["insert", "update", "upsert", "delete", "hash", "extract", "convert"], BeforeValidator(_lower)
    ] = Field(
        description="`insert` sets the attribute where it is missing, `update` where it is there, `upsert` anyway; "
        "`delete` removes it; `hash` puts the SHA-256 of its value in its place; `extract` sets an attribute for each "
        "named group of `pattern`; `convert` turns it into `converted_type`."
    )
    value: AttributeValue = Field(None, description="What it is set to.")
    from_attribute: str = Field("", description="Set it to the value of this attribute, if the span has it.")
    default_value: AttributeValue = Field(
        None, description="What it is set to where the span has no attribute `from_attribute`."
    )
    from_context: None = Field(
        None, description="Must be absent: what came with the request is not known here any more."
    )
    pattern: Expression = Field(
        "",
        description="A regular expression (RE2): for `delete` and `hash` what is searched for in the names of all "
        "attributes, for `extract` in the value.",
    )
    converted_type: Literal["int", "double", "string"] | None = Field(
        None, description="What `convert` makes of the value; what can't be converted stays as it is."
    )

    @field_validator("from_context", mode="before")
    @classmethod
    def _no_context(cls, value: Any) -> None:
        if value is not None:
            raise ValueError("is not supported: use value, from_attribute or default_value")

    @model_validator(mode="after")
    def _fits_the_action(self) -> "AttributeAction":
        given = {name for name in (*_SOURCES, "pattern", "converted_type") if getattr(self, name) not in (None, "")}
        uses = _USES[self.action]
        if unused := sorted(given - uses):
            raise ValueError(f"{self.action} does not use {' or '.join(unused)}; it takes {', '.join(sorted(uses))}")
        if not self.key and (self.action not in ("delete", "hash") or not self.pattern):
            raise ValueError("key is missing" + (" (or pattern)" if self.action in ("delete", "hash") else ""))
        if "value" in uses and not given:
            raise ValueError(f"{self.action} needs value, from_attribute or default_value")
        if {"value", "from_attribute"} <= given:
            raise ValueError("value and from_attribute can't be used together")
        if self.action == "convert" and not self.converted_type:
            raise ValueError("convert needs converted_type")
        if self.action == "extract":
            self._check_groups()
        return self

    def _check_groups(self) -> None:
        if not self.pattern:
            raise ValueError("extract needs pattern")
        groups = NamedGroups(self.pattern)
        if groups.nameless:
            raise ValueError("pattern has a group without a name: write (?P<name>…), or (?:…) where none is meant")
        if not groups:
            raise ValueError("pattern has no named group: write (?P<name>…) for each attribute that is to be set")


class WantedAttribute(Model):
    """An attribute that must be there."""

    key: str = Field(min_length=1, description="The attribute.")
    value: AttributeValue = Field(None, description="Its value, of the same type; absent: any.")


class WantedLibrary(Model):
    """An instrumentation scope."""

    name: str = Field("", description="Its name.")
    version: str | None = Field(None, description="Its version; absent: any.")


class RegexpCache(Model):
    """Accepted from the Collector."""

    cacheenabled: bool = Field(False, description="Accepted; nothing depends on it.")
    cachemaxnumentries: int = Field(0, description="Accepted; nothing depends on it.")


def _known_kind(kind: str) -> None:
    if kind not in SPAN_KINDS[1:]:
        raise ValueError(f"unknown span kind {kind!r}; there are {', '.join(SPAN_KINDS[1:])}")


def _expression_of_attribute(wanted: WantedAttribute) -> None:
    if wanted.value is not None and not isinstance(wanted.value, str):
        raise ValueError(f"with match_type regexp the value of {wanted.key!r} must be text")
    with below("value"):
        _expression(wanted.value or "")


def _expressions_of_library(library: WantedLibrary) -> None:
    with below("name"):
        _expression(library.name)
    with below("version"):
        _expression(library.version or "")


class Match(Model):
    """Which spans are meant: those that meet all that is given, of each list at least one."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("log_bodies", "log_severity_number", "log_severity_texts", "metric_names"),
            "remove it: podtrail handles traces only",
        ),
    }

    match_type: Literal["strict", "regexp"] = Field(
        description="Whether texts are compared, or searched for as regular expressions (RE2)."
    )
    regexp: RegexpCache = Field(RegexpCache(), description="Accepted from the Collector; nothing depends on it.")
    services: tuple[str, ...] = Field((), description="Names of services.")
    span_names: tuple[str, ...] = Field((), description="Names of spans.")
    span_kinds: tuple[str, ...] = Field((), description=f"Kinds of spans: {', '.join(SPAN_KINDS[1:])}.")
    attributes: tuple[WantedAttribute, ...] = Field((), description="Attributes of spans; all must be there.")
    resources: tuple[WantedAttribute, ...] = Field((), description="Attributes of resources; all must be there.")
    libraries: tuple[WantedLibrary, ...] = Field((), description="Instrumentation scopes; all must match.")

    @model_validator(mode="after")
    def _means_something(self) -> "Match":
        lists = ("services", "span_names", "span_kinds", "attributes", "resources", "libraries")
        if not any(getattr(self, name) for name in lists):
            raise ValueError(f"at least one of {', '.join(lists)} must be given")
        if self.match_type == "strict":
            self._check("span_kinds", _known_kind)
            return self
        together(
            *(partial(self._check, name, _expression) for name in ("services", "span_names", "span_kinds")),
            partial(self._check, "attributes", _expression_of_attribute),
            partial(self._check, "resources", _expression_of_attribute),
            partial(self._check, "libraries", _expressions_of_library),
        )
        return self

    def _check(self, name: str, check: Callable[[Any], object]) -> None:
        with below(name):
            each(check, getattr(self, name))

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Return what is legal but hardly meant."""
        if len(self.libraries) > 1:
            return [(("libraries",), "all of them must match, and a span has one: as in the Collector")]
        return []


class Config(Model):
    """Settings of `attributes`."""

    actions: tuple[AttributeAction, ...] = Field((), description="What is done, in this order.")
    include: Match | None = Field(None, description="Only spans that match are changed.")
    exclude: Match | None = Field(None, description="Spans that match are not changed; looked at after `include`.")

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Return what is legal but hardly meant."""
        return [] if self.actions else [(("actions",), "without actions it changes nothing")]
