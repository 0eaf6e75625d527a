"""The ports of a configuration: all of them moved by one option, those in use named together, its page found again."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from podtrail.cli.held_files import HeldFile, own_names
from podtrail.component import StartError
from podtrail.config import ConfigError, Document, Position, Problem, Source
from podtrail.config.nodes import MapNode, ScalarNode, descend, plain
from podtrail.config.problem import Path
from podtrail.config.types import host_port
from podtrail.pipeline.loops import Listens, Sends, reaches
from podtrail.pipeline.settings import Settings
from podtrail.transport.listen import AddressInUse, bind

_METRICS: Final = ("service", "telemetry", "metrics")
_HIGHEST: Final = 65_535
_OFFSETS: Final = range(100, 10_001, 100)
_PORT: Final = re.compile(r":[0-9]+(?=/?$)")
_PAGE: Final = "otlp_endpoint"
"""The key of the address at which a page receives spans."""


class ListeningAddress(NamedTuple):
    """An address that a configuration listens on."""

    path: Path
    endpoint: str

    @property
    def port(self) -> int:
        """0: any free one."""
        return host_port(self.endpoint)[1]

    def __str__(self) -> str:
        return "::".join(map(str, self.path))


def listeners(settings: Settings) -> Sequence[ListeningAddress]:
    """Return the addresses of all components in use, and of the metrics."""
    used = dict.fromkeys(id for pipeline in settings.pipelines for id in pipeline.receivers)
    found = [
        ListeningAddress((section, id, *below), endpoint)
        for section, ids in (("extensions", settings.service.extensions), ("receivers", used))
        for id in ids
        if isinstance(config := settings.sections[section][id].config, Listens)
        for below, endpoint in config.listens().items()
    ]
    if settings.service.telemetry.metrics.address is not None:
        host, port = settings.service.telemetry.metrics.address
        found.append(ListeningAddress(_METRICS, f"[{host}]:{port}" if ":" in host else f"{host}:{port}"))
    return found


def in_use(settings: Settings) -> Sequence[str]:
    """Return a line for each address that somebody else listens at."""
    return [
        f"{listener}: can't listen on {listener.endpoint}: Address already in use"
        for listener in listeners(settings)
        if listener.port and _is_taken(listener.endpoint)
    ]


def advice(settings: Settings, held: Sequence[HeldFile] = (), *, ports: bool = True) -> str:
    """Return what to do where ports are in use, or files held by another process."""
    offset = next((offset for offset in _OFFSETS if _are_free(settings, offset)), None) if ports else None
    options = [f"--port-offset {offset}"] if offset else []
    options += [own_names(held)] if held else []
    if not options:
        return "another podtrail may run: end it"
    what = " and ".join(["move all ports here"] * bool(offset) + ["give this one files of its own"] * bool(held))
    return f"another podtrail may run: end it, or {what}: {' '.join(options)}"


def moved(document: Document, settings: Settings, offset: int) -> Sequence[str]:
    """Return the assignments that move all ports by an offset, and lead exporters to the page of this configuration.

    Raises:
        ConfigError: a port would be beyond the highest one.
    """
    to = {listener: _moved(listener, offset) for listener in listeners(settings) if listener.port}
    to |= _given_a_port(document, settings, to)
    assigned = [assignment for old, new in to.items() if old != new for assignment in _assigned(document, new)]
    page = next((new for new in to.values() if new.path[0] == "extensions" and new.path[-1] == _PAGE), None)
    for id, path, host, port in _senders(settings):
        own = next((new for old, new in to.items() if old.port and reaches(host, port, *host_port(old.endpoint))), None)
        if own is None and page is not None and _is_for_the_page(document, settings, path, page, port):
            own = page
        if own is not None and own.port != port:
            written = str(getattr(settings.exporters[id].config, str(path[-1])))
            assigned.append(f"{'::'.join(map(str, path))}={json.dumps(_PORT.sub(f':{own.port}', written))}")
    return assigned


def _senders(settings: Settings) -> Iterator[tuple[str, Path, str, int]]:
    """Yield the exporters in use that send to an address: id, path of the key, host and port."""
    for id in dict.fromkeys(id for pipeline in settings.pipelines for id in pipeline.exporters):
        config = settings.exporters[id].config
        if isinstance(config, Sends):
            key, host, port = config.sends_to()
            if port:
                yield id, ("exporters", id, key), host.lower(), port


def _is_for_the_page(document: Document, settings: Settings, path: Path, page: ListeningAddress, port: int) -> bool:
    """Tell whether an endpoint is the page's by default (`${env:NAME:-…}`), while the page listens elsewhere."""
    node = descend(document.root, path)
    default = type(settings.extensions[str(page.path[1])].config).model_fields[_PAGE].default
    return isinstance(node, ScalarNode) and ":-" in (node.origin or "") and host_port(default)[1] == port


def _given_a_port(
    document: Document, settings: Settings, to: Mapping[ListeningAddress, ListeningAddress]
) -> dict[ListeningAddress, ListeningAddress]:
    """Return the page's address for spans with a free port in place of 0, if an exporter sends there by default."""
    for listener in listeners(settings):
        if listener not in to and listener.path[0] == "extensions" and listener.path[-1] == _PAGE:
            host, _ = host_port(listener.endpoint)
            if any(
                _is_for_the_page(document, settings, path, listener, port) for _, path, _, port in _senders(settings)
            ):
                return {listener: listener._replace(endpoint=_with_port(listener.endpoint, _free_port(host)))}
    return {}


@cache
def _free_port(host: str) -> int:
    """Return a port that is free now; the same at a reload."""
    found = bind(f"[{host}]:0" if ":" in host else f"{host}:0")
    port: int = found[0].getsockname()[1]
    for listener in found:
        listener.close()
    return port


def _moved(listener: ListeningAddress, offset: int) -> ListeningAddress:
    port = listener.port + offset
    if port > _HIGHEST:
        source = Position(Source(f"--port-offset {offset}"))
        raise ConfigError([Problem(source, listener.path, f"would be {port}; the highest port is {_HIGHEST}")])
    return listener._replace(endpoint=_with_port(listener.endpoint, port))


def _with_port(endpoint: str, port: int) -> str:
    return f"{endpoint.rpartition(':')[0]}:{port}"


def _assigned(document: Document, listener: ListeningAddress) -> Iterator[str]:
    if listener.path != _METRICS:
        yield f"{listener}={json.dumps(listener.endpoint)}"
        return
    host, port = host_port(listener.endpoint)
    if descend(document.root, (*_METRICS, "address")) is not None:
        yield f"{listener}::address={json.dumps(listener.endpoint)}"
        return
    kept: dict[str, Any] = {"host": host, "port": port}
    prometheus = descend(document.root, (*_METRICS, "readers", 0, "pull", "exporter", "prometheus"))
    if isinstance(prometheus, MapNode):
        kept = {**plain(prometheus), **kept}
    yield f"{listener}::readers={json.dumps([{'pull': {'exporter': {'prometheus': kept}}}])}"


def _is_taken(endpoint: str) -> bool:
    try:
        found = bind(endpoint)
    except AddressInUse:
        return True
    except StartError:  # the start itself says what is wrong
        return False
    for listener in found:
        listener.close()
    return False


def _are_free(settings: Settings, offset: int) -> bool:
    found = [listener for listener in listeners(settings) if listener.port]
    return all(
        listener.port + offset <= _HIGHEST and not _is_taken(_with_port(listener.endpoint, listener.port + offset))
        for listener in found
    )
