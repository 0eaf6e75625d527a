"""One action on attributes, under the Collector's keys."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from podtrail.config.re2 import NamedGroups, finder
from podtrail.config.types import Model

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


def check_expression(text: str) -> str:
    """Return a regular expression that RE2 takes, or "".

    Raises:
        ValueError: it takes it not.
    """
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


_Expression = Annotated[str, AfterValidator(check_expression)]
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
    from_attribute: str = Field("", description="Set it to the value of this attribute, if that is there.")
    default_value: AttributeValue = Field(
        None, description="What it is set to where there is no attribute `from_attribute`."
    )
    from_context: None = Field(
        None, description="Must be absent: what came with the request is not known here any more."
    )
    pattern: _Expression = Field(
        "",
        description="A regular expression (RE2): for `delete` and `hash` what is searched for in the names of all "
        "attributes, for `extract` in the value.",
    )
    converted_type: Annotated[
        Literal["int", "double", "string"] | None, BeforeValidator(lambda value: value or None)
    ] = Field(None, description="What `convert` makes of the value; what can't be converted stays as it is.")

    @field_validator("from_context", mode="before")
    @classmethod
    def _no_context(cls, value: Any) -> None:
        if value not in (None, ""):
            raise ValueError("is not supported: use value, from_attribute or default_value")

    @model_validator(mode="after")
    def _fits_the_action(self) -> "AttributeAction":
        given = {name for name in (*_SOURCES, "pattern", "converted_type") if getattr(self, name) not in (None, "")}
        uses = _USES[self.action]
        if unused := sorted(given - uses):
            raise ValueError(f"{self.action} does not use {' or '.join(unused)}; it takes {', '.join(sorted(uses))}")
        if not self.key and (self.action not in ("delete", "hash") or not self.pattern):
            raise ValueError("key is missing" + (" (or pattern)" if self.action in ("delete", "hash") else ""))
        if "value" in uses and not given and self.value is None and self.default_value is None:
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
