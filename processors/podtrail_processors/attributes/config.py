"""The configuration of `attributes`: the Collector's keys, for spans."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from podtrail.config.mistakes import below, each, together
from podtrail.config.types import Model, WarningPath
from podtrail.otlp import KINDS
from podtrail_processors.attribute_actions import AttributeAction, AttributeValue, check_expression

SPAN_KINDS = tuple(f"SPAN_KIND_{name.upper()}" for name in KINDS)


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
        check_expression(wanted.value or "")


def _expressions_of_library(library: WantedLibrary) -> None:
    with below("name"):
        check_expression(library.name)
    with below("version"):
        check_expression(library.version or "")


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
            *(partial(self._check, name, check_expression) for name in ("services", "span_names", "span_kinds")),
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
