"""Which components there are. The core names them by string and imports a module only when it is configured."""

import importlib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points

from podtrail.component.factory import Factory, Kind

_BUILT_IN: dict[Kind, dict[str, str]] = {
    "receiver": {
        "otlp": "podtrail_receivers.otlp",
        "otlp_json_file": "podtrail_receivers.otlp_json_file",
        "scheduler": "podtrail_receivers.scheduler",
    },
    "processor": {
        "attributes": "podtrail_processors.attributes",
        "batch": "podtrail_processors.batch",
        "filter": "podtrail_processors.filter",
        "link_stitching": "podtrail_processors.link_stitching",
        "memory_limiter": "podtrail_processors.memory_limiter",
        "probabilistic_sampler": "podtrail_processors.probabilistic_sampler",
        "scheduling_metrics": "podtrail_processors.scheduling_metrics",
        "tail_sampling": "podtrail_processors.tail_sampling",
    },
    "exporter": {
        "debug": "podtrail_exporters.debug",
        "file": "podtrail_exporters.file",
        "otlp_grpc": "podtrail_exporters.otlp_grpc",
        "otlp_http": "podtrail_exporters.otlp_http",
        "recording": "podtrail_exporters.recording",
    },
    "extension": {
        "health_check": "podtrail_extensions.health_check",
        "viewer": "podtrail_extensions.viewer",
    },
}
_ALIASES: dict[Kind, dict[str, str]] = {
    "receiver": {"otlpjsonfile": "otlp_json_file"},
    "processor": {},
    "exporter": {"otlp": "otlp_grpc", "otlphttp": "otlp_http"},
    "extension": {"healthcheck": "health_check"},
}


@cache
def _third_party() -> dict[tuple[Kind, str], Factory]:
    """Factories that other distributions offer under the entry point group `podtrail.components`."""
    found: dict[tuple[Kind, str], Factory] = {}
    for point in entry_points(group="podtrail.components"):
        factory = point.load()
        if not isinstance(factory, Factory):
            raise TypeError(f"entry point {point.name} = {point.value} of podtrail.components is not a Factory")
        for name in (factory.type, *factory.aliases):
            found[factory.kind, name] = factory
    return found


def types(kind: Kind) -> tuple[str, ...]:
    """Return the type names of a kind, sorted, aliases left out."""
    others = {factory.type for (of, _), factory in _third_party().items() if of == kind}
    return tuple(sorted(others | _BUILT_IN[kind].keys()))


def find(kind: Kind, type_name: str) -> Factory | None:
    """Return the factory of a type or of one of its older names, None when there is none."""
    name = _ALIASES[kind].get(type_name, type_name)
    module = _BUILT_IN[kind].get(name)
    if module is None:
        return _third_party().get((kind, name))
    factory = importlib.import_module(module).FACTORY
    assert isinstance(factory, Factory)
    return factory


def all_factories() -> Iterator[Factory]:
    """Yield every factory, by kind and type."""
    for kind in _BUILT_IN:
        for name in types(kind):
            factory = find(kind, name)
            assert factory is not None
            yield factory
