"""Which components there are. The core names them by string and imports a module only when it is configured."""

import importlib
import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import NamedTuple

from pydantic import BaseModel

from podtrail.component.factory import Factory, Kind

_BUILT_IN: dict[Kind, dict[str, str]] = {
    "receiver": {
        "k8s_pods": "podtrail_receivers.k8s_pods",
        "kafka": "podtrail_receivers.kafka",
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
        "resource": "podtrail_processors.resource",
        "scheduling_metrics": "podtrail_processors.scheduling_metrics",
        "tail_sampling": "podtrail_processors.tail_sampling",
    },
    "exporter": {
        "debug": "podtrail_exporters.debug",
        "file": "podtrail_exporters.file",
        "kafka": "podtrail_exporters.kafka",
        "load_balancing": "podtrail_exporters.load_balancing",
        "otlp_grpc": "podtrail_exporters.otlp_grpc",
        "otlp_http": "podtrail_exporters.otlp_http",
        "recording": "podtrail_exporters.recording",
    },
    "extension": {
        "basicauth": "podtrail_extensions.basicauth",
        "bearertokenauth": "podtrail_extensions.bearertokenauth",
        "file_storage": "podtrail_extensions.file_storage",
        "health_check": "podtrail_extensions.health_check",
        "viewer": "podtrail_extensions.viewer",
    },
}
_ALIASES: dict[Kind, dict[str, str]] = {
    "receiver": {"otlpjsonfile": "otlp_json_file"},
    "processor": {},
    "exporter": {"loadbalancing": "load_balancing", "otlp": "otlp_grpc", "otlphttp": "otlp_http"},
    "extension": {
        "basic_auth": "basicauth",
        "bearer_token_auth": "bearertokenauth",
        "healthcheck": "health_check",
    },
}


_FACTORIES: dict[tuple[Kind, str], str] = {("receiver", "otlpjsonfile"): "UNDER_ITS_OLDER_NAME"}
"""Names under which a component has other defaults: the factory in its module; `FACTORY` for all others."""


_TYPE = re.compile(r"[A-Za-z][0-9A-Za-z_]{0,62}")


class Broken(NamedTuple):
    """What another distribution offers and can't be used; everything else can."""

    entry_point: str
    """`name = module:object` and its distribution."""
    reason: str


class _Others(NamedTuple):
    factories: dict[tuple[Kind, str], Factory]
    broken: list[Broken]


@cache
def _third_party() -> _Others:
    """What other distributions offer under the entry point group `podtrail.components`."""
    others = _Others({}, [])
    for point in sorted(entry_points(group="podtrail.components"), key=lambda point: (point.name, point.value)):
        try:
            factory = _checked(point.load())
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever an import does; `broken` tells of it
            reason = str(error) if type(error) is _Unusable else f"{type(error).__name__}: {error}"
            others.broken.append(Broken(_shown(point), " ".join(reason.split())))
            continue
        for name in (factory.type, *factory.aliases):
            if _is_built_in(factory.kind, name) or (factory.kind, name) in others.factories:
                reason = f"there is a {factory.kind} {name!r} already"
                others.broken.append(Broken(_shown(point), reason))
            else:
                others.factories[factory.kind, name] = factory
    return others


class _Unusable(Exception):
    """What an entry point leads to is no component."""


def _checked(factory: object) -> Factory:
    if not isinstance(factory, Factory):
        raise _Unusable(f"is a {type(factory).__name__}, not a podtrail.component.Factory")
    if factory.kind not in _BUILT_IN:
        raise _Unusable(f"kind {factory.kind!r} is none of {', '.join(_BUILT_IN)}")
    for name in (factory.type, *factory.aliases):
        if not _TYPE.fullmatch(name):
            raise _Unusable(f"{name!r} can't be a type: letters, digits and _, a letter first")
    if not (isinstance(factory.Config, type) and issubclass(factory.Config, BaseModel)):
        raise _Unusable("Config is no class of podtrail.config.types.Model")
    return factory


def _shown(point: EntryPoint) -> str:
    return f"entry point {point.name} = {point.value}{f' of {point.dist.name}' if point.dist else ''}"


def _is_built_in(kind: Kind, name: str) -> bool:
    return name in _BUILT_IN[kind] or name in _ALIASES[kind]


def broken() -> tuple[Broken, ...]:
    """Return what other distributions offer and can't be used."""
    return tuple(_third_party().broken)


def types(kind: Kind) -> tuple[str, ...]:
    """Return the type names of a kind, sorted, aliases left out."""
    others = {factory.type for (of, _), factory in _third_party().factories.items() if of == kind}
    return tuple(sorted(others | _BUILT_IN[kind].keys()))


def find(kind: Kind, type_name: str) -> Factory | None:
    """Return the factory of a type or of one of its older names, None when there is none."""
    name = _ALIASES[kind].get(type_name, type_name)
    module = _BUILT_IN[kind].get(name)
    if module is None:
        return _third_party().factories.get((kind, name))
    factory = getattr(importlib.import_module(module), _FACTORIES.get((kind, type_name), "FACTORY"))
    assert isinstance(factory, Factory)
    return factory


def all_factories() -> Iterator[Factory]:
    """Yield every factory, by kind and type."""
    for kind in _BUILT_IN:
        for name in types(kind):
            factory = find(kind, name)
            assert factory is not None
            yield factory
