"""The configuration of `filter`: the Collector's keys for traces. Conditions are compiled, so errors show where."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from podtrail.config.mistakes import below, each
from podtrail.config.types import Model, WarningPath

ContextName = Literal["resource", "scope", "span", "spanevent"]

_NO_SUCH_SIGNAL = "must be absent: podtrail has traces only; what there is for them is traces and trace_conditions"


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _compiles_for(context: ContextName) -> Callable[[str], str]:
    def check(text: str) -> str:
        from podtrail_processors.filter.contexts import compiled

        compiled(text, context)
        return text

    return check


ErrorMode = Annotated[Literal["ignore", "silent", "propagate"], BeforeValidator(_lower)]
ResourceCondition = Annotated[str, AfterValidator(_compiles_for("resource"))]
SpanCondition = Annotated[str, AfterValidator(_compiles_for("span"))]
EventCondition = Annotated[str, AfterValidator(_compiles_for("spanevent"))]


def _check(conditions: Sequence[str], context: ContextName | None = None) -> None:
    """Raise ValueError for conditions that can't be read."""
    from podtrail_processors.filter.contexts import compiled, context_of

    if conditions:
        meant = context or context_of(conditions)
        each(partial(compiled, context=meant), conditions)


class TraceConditions(Model):
    """Conditions by what they are about. They are asked in this order; what is dropped is asked nothing more."""

    resource: tuple[ResourceCondition, ...] = Field(
        (), description="Conditions on resources: when one holds, all spans of the resource are dropped."
    )
    span: tuple[SpanCondition, ...] = Field(
        (), description="Conditions on spans: when one holds, the span is dropped; its children stay."
    )
    spanevent: tuple[EventCondition, ...] = Field(
        (), description="Conditions on events of spans: when one holds, the event is dropped; its span stays."
    )


class ConditionGroup(Model):
    """Conditions that are about the same: spans, events of spans, resources or scopes."""

    context: Annotated[ContextName, BeforeValidator(_lower)] | None = Field(
        None,
        description="What bare paths mean and what is dropped; by default what the paths in the conditions begin with.",
    )
    conditions: tuple[str, ...] = Field((), description="The conditions: what meets one of them is dropped.")
    error_mode: ErrorMode | None = Field(None, description="As `error_mode` above, for these conditions.")

    @model_validator(mode="after")
    def _compiles(self) -> "ConditionGroup":
        if not self.conditions and self.context is None:
            raise ValueError("a group has conditions, or at least a context")
        with below("conditions"):
            _check(self.conditions, self.context)
        return self

    def meant(self) -> ContextName:
        """Return the context, worked out from the conditions where none is given.

        Raises:
            ValueError: the conditions don't tell.
        """
        from podtrail_processors.filter.contexts import context_of

        return self.context or context_of(self.conditions)


class BareCondition(ConditionGroup):
    """A condition that stands alone in the list: it is about the same as the others."""


def _grouped(item: Any) -> Any:
    return BareCondition(conditions=(item,)) if isinstance(item, str) else item


def _bare(items: Sequence[ConditionGroup]) -> tuple[str, ...]:
    return tuple(text for item in items if isinstance(item, BareCondition) for text in item.conditions)


class Config(Model):
    """Settings of `filter`."""

    error_mode: ErrorMode = Field(
        "ignore",
        description="When a condition has no answer (a wrong type, a division by zero): `ignore` passes it over and "
        "logs that, `silent` only passes it over, `propagate` drops the batch that it happened in.",
    )
    traces: TraceConditions = Field(TraceConditions(), description="Conditions by what they are about.")
    trace_conditions: tuple[Annotated[ConditionGroup, BeforeValidator(_grouped)], ...] = Field(
        (),
        description="Groups of conditions; or conditions alone, whose paths then begin with what they are about "
        "(`span.name`, `resource.attributes`). Not together with `traces`.",
    )
    spans: None = Field(None, description="Must be absent: conditions took the place of `include` and `exclude`.")
    metrics: None = Field(None, description="Must be absent: podtrail has traces only.")
    logs: None = Field(None, description="Must be absent: podtrail has traces only.")
    profiles: None = Field(None, description="Must be absent: podtrail has traces only.")
    metric_conditions: None = Field(None, description="Must be absent: podtrail has traces only.")
    log_conditions: None = Field(None, description="Must be absent: podtrail has traces only.")
    profile_conditions: None = Field(None, description="Must be absent: podtrail has traces only.")

    @field_validator(
        *("metrics", "logs", "profiles", "metric_conditions", "log_conditions", "profile_conditions"), mode="before"
    )
    @classmethod
    def _traces_only(cls, value: Any) -> None:
        if value not in (None, {}, []):
            raise ValueError(_NO_SUCH_SIGNAL)

    @field_validator("spans", mode="before")
    @classmethod
    def _conditions_only(cls, value: Any) -> None:
        if value not in (None, {}):
            raise ValueError(
                "is not supported: write what is to be dropped as conditions under traces::span, "
                'for instance resource.attributes["service.name"] == "probe"'
            )

    @field_validator("trace_conditions", mode="before")
    @classmethod
    def _one_form(cls, items: Any) -> Any:
        if isinstance(items, list | tuple) and len({isinstance(item, str) for item in items}) > 1:
            raise ValueError("has either conditions or groups of them, not both")
        return items

    @field_validator("trace_conditions")
    @classmethod
    def _agree(cls, items: tuple[ConditionGroup, ...]) -> tuple[ConditionGroup, ...]:
        _check(_bare(items))
        return items

    @model_validator(mode="after")
    def _one_style(self) -> "Config":
        if self.trace_conditions and self.traces != TraceConditions():
            raise ValueError("traces and trace_conditions can't be used together")
        return self

    def groups(self) -> list[ConditionGroup]:
        """Return the conditions in groups, in the order in which they are asked."""
        if not self.trace_conditions:
            return [
                ConditionGroup(context=context, conditions=conditions)
                for context, conditions in (
                    ("resource", self.traces.resource),
                    ("span", self.traces.span),
                    ("spanevent", self.traces.spanevent),
                )
                if conditions
            ]
        bare = _bare(self.trace_conditions)
        return [ConditionGroup(conditions=bare)] if bare else list(self.trace_conditions)

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Return what is legal but hardly meant."""
        found: list[tuple[WarningPath, str]] = []
        if not self.groups():
            found.append(((), "without conditions it drops nothing"))
        if self.error_mode == "propagate":
            found.append((("error_mode",), "loses all spans of a batch when a condition fails on one of them"))
        return found
