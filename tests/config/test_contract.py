"""What every registered configuration keeps to."""

import re
from collections.abc import Iterator
from typing import get_args

import pytest
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from podtrail.component import Factory, registry
from podtrail.config.shape import Shape, field_shapes
from podtrail.config.telemetry import TelemetryConfig

FACTORIES = tuple(registry.all_factories())
NEEDED = {
    ("receiver", "otlp"): "protocols",
    ("receiver", "otlp_json_file"): "include",
    ("processor", "memory_limiter"): "check_interval",
    ("processor", "resource"): "attributes",
    ("exporter", "file"): "path",
    ("exporter", "load_balancing"): "resolver",
    ("exporter", "otlp_grpc"): "endpoint",
    ("exporter", "otlp_http"): "endpoint",
    ("exporter", "recording"): "path",
    ("extension", "basicauth"): "no credential source provided",
    ("extension", "bearertokenauth"): "no bearer token provided",
}
"""What can't be left out, for the components that need anything at all."""


def models(root: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield a model and all models that stand in it, each once."""
    found = {root: None}
    waiting = [root]
    while waiting:
        model = waiting.pop()
        yield model
        for field in model.model_fields.values():
            for shape in field_shapes(field):
                for inner in inside(shape):
                    if inner not in found:
                        found[inner] = None
                        waiting.append(inner)


def inside(shape: Shape) -> Iterator[type[BaseModel]]:
    """Yield the models that a shape is or holds."""
    if shape.model is not None:
        yield shape.model
    elif get_args(shape.type):
        for below in (*shape.below(0), *shape.below("key")):
            yield from inside(below)


def fields(root: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """Yield every key that can be written, with the class it belongs to."""
    for model in models(root):
        for name, field in model.model_fields.items():
            yield f"{model.__name__}.{field.alias or name}", field


POLICIES = "podtrail_processors.tail_sampling"
LENIENT = {
    f"{POLICIES}.config.sampler.TopPolicy",
    f"{POLICIES}.policies.always_sample.Config",
    f"{POLICIES}.policies.composite.CompositePart",
    f"{POLICIES}.policies.conjunction.ConjunctionPart",
    f"{POLICIES}.policies.leaves.Leaf",
    f"{POLICIES}.policies.trace_flags.Config",
}
"""Where the Collector passes over keys that it does not know, and pasted configurations may have some."""
ZERO_WHEN_NULL = {f"{POLICIES}.config.sampler.Config.decision_wait", f"{POLICIES}.config.sampler.Config.num_traces"}
"""Where a key without a value means 0 to the Collector."""
every_factory = pytest.mark.parametrize(
    "factory", FACTORIES, ids=[f"{factory.kind} {factory.type}" for factory in FACTORIES]
)
every_config = pytest.mark.parametrize(
    "config",
    [*(factory.Config for factory in FACTORIES), TelemetryConfig],
    ids=[*(f"{factory.kind} {factory.type}" for factory in FACTORIES), "telemetry"],
)


@every_config
def test_keys_are_snake_case_and_described(config: type[BaseModel]) -> None:
    for name, field in fields(config):
        key = name.partition(".")[2]
        assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", key), f"{name} is not snake_case"
        assert field.description, f"{name} has no description"


@every_config
def test_unknown_keys_are_refused(config: type[BaseModel]) -> None:
    loose = {f"{m.__module__}.{m.__name__}" for m in models(config) if m.model_config.get("extra") != "forbid"}

    assert loose <= LENIENT


@every_factory
def test_an_empty_map_gives_the_defaults_or_says_what_is_needed(
    factory: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", raising=False)
    needed = NEEDED.get((factory.kind, factory.type))

    if needed is None:
        assert factory.Config.model_validate({}) == factory.Config()
    else:
        with pytest.raises(ValidationError, match=needed):
            factory.Config.model_validate({})


@every_config
def test_a_key_without_a_value_has_its_default_and_an_optional_section_those_of_its_keys(
    config: type[BaseModel],
) -> None:
    for model in models(config):
        for name, field in model.model_fields.items():
            key = field.alias or name
            if f"{model.__module__}.{model.__name__}.{key}" in ZERO_WHEN_NULL:
                continue
            off = field.is_required() or field.get_default(call_default_factory=True, validated_data={}) is None
            section = off and any(shape.model for shape in field_shapes(field))
            assert outcome(model, {key: None}) == outcome(model, {key: {}} if section else {}), f"{model}.{key}"


def outcome(model: type[BaseModel], values: dict[str, object]) -> BaseModel | list[tuple[str, str]]:
    """Return what a model makes of values, or everything that it says is wrong with them."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        return [(str(one["loc"]), one["msg"]) for one in error.errors()]


@every_factory
def test_older_names_find_the_same_component(factory: Factory) -> None:
    for name in (factory.type, *factory.aliases):
        found = registry.find(factory.kind, name)
        assert found is not None
        assert (found.type, found.create) == (factory.type, factory.create)
        assert issubclass(found.Config, factory.Config)  # one has other defaults under its older name
