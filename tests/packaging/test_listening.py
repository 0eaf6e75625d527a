"""Nothing listens beyond loopback unasked: every component that the registry knows, and every socket that is opened."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
from pydantic import BaseModel, ValidationError

from podtrail.component.registry import all_factories, find
from podtrail.config.types import ClientEndpoint, Endpoint
from podtrail.transport.settings import ServerSettings
from tools.docs.rooms import SOURCE_ROOTS

ROOT = Path(__file__).parents[2]

SHOWS_NOTHING = {
    ("extension", "health_check", "endpoint"): "answers the kubelet, takes nothing in and tells of no span",
}
"""What may listen where it is told (docs/security.md)."""
CLIENTS = {
    ("exporter", "otlp_http", "endpoint"),
    ("exporter", "otlp_http", "traces_endpoint"),
    ("receiver", "scheduler", "kube_scheduler.configz.endpoint"),
    ("receiver", "scheduler", "kube_scheduler.metrics.endpoint"),
}
"""Addresses that are connected to."""
BESIDES: dict[tuple[str, str], dict[str, Any]] = {("extension", "viewer"): {"allowed_hosts": ["gateway.example"]}}
"""What else a configuration needs to be right."""

OPENS = {
    "src/podtrail/transport/grpc_server.py": "its settings are ServerSettings, or those of who asks",
    "src/podtrail/transport/http_server.py": "its settings are ServerSettings",
    "src/podtrail/transport/listen.py": "binds for the others",
    "src/podtrail/transport/plain_http.py": "serves what its caller's configuration admits",
    "src/podtrail/service/telemetry.py": "own metrics: warned of",
    "extensions/podtrail_extensions/viewer/extension.py": "a component",
    "extensions/podtrail_extensions/health_check.py": "a component",
    "receivers/podtrail_receivers/otlp.py": "a component",
    "webhook/podtrail_webhook/server.py": "TLS always",
    "kubernetes/podtrail_kubernetes/tracing_proxy/server.py": "the loopback alone",
    "scheduler/podtrail_scheduler/cluster/kubernetes/serving.py": "--bind-address: probes and metrics",
    "scheduler/podtrail_scheduler/cluster/kubernetes/service.py": "--bind-address: probes and metrics",
}
"""Who opens a socket that others can connect to, and what makes that right."""
OPENING = {
    "create_server",
    "start_server",
    "start_unix_server",
    "create_unix_server",
    "add_insecure_port",
    "add_secure_port",
    "TCPSite",
    "UnixSite",
    "SockSite",
    "HTTPServer",
    "ThreadingHTTPServer",
    "served",
    "GrpcServer",
    "HttpServer",
    "run_app",
    "start_http_server",
}


class Key(NamedTuple):
    """A key of a component that has an address."""

    kind: str
    type: str
    path: str
    listens: bool
    connects: bool

    @property
    def id(self) -> tuple[str, str, str]:
        return self.kind, self.type, self.path


def models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from models(part)


def addresses(
    kind: str, type_name: str, model: type[BaseModel], path: tuple[str, ...] = (), seen: tuple[type, ...] = ()
) -> Iterator[Key]:
    for name, field in model.model_fields.items() if model not in seen else ():
        here = (*path, field.alias or name)
        listens = Endpoint.__metadata__[0] in field.metadata or (  # type: ignore[attr-defined]
            issubclass(model, ServerSettings) and name == "endpoint"
        )
        connects = ClientEndpoint.__metadata__[0] in field.metadata  # type: ignore[attr-defined]
        if listens or connects or any(word in name for word in ("endpoint", "address", "listen")):
            yield Key(kind, type_name, ".".join(here), listens, connects)
        for part in models(field.annotation):
            yield from addresses(kind, type_name, part, here, (*seen, model))


KEYS = [key for factory in all_factories() for key in addresses(factory.kind, factory.type, factory.Config)]
LISTENING = [key for key in KEYS if key.listens and key.id not in SHOWS_NOTHING]


def configured(key: Key, **more: object) -> Any:
    *above, last = key.path.split(".")
    written: dict[str, Any] = {last: "0.0.0.0:4317", **more}
    for name in reversed(above):
        written = {name: written}
    factory = find(key.kind, key.type)  # type: ignore[arg-type] # one of the kinds
    assert factory is not None
    return factory.Config.model_validate(BESIDES.get((key.kind, key.type), {}) | written)


def warned(model: BaseModel) -> list[str]:
    told = [text for _, text in getattr(model, "warnings", list)()]
    for name in type(model).model_fields:
        value = getattr(model, name)
        told += warned(value) if isinstance(value, BaseModel) else []
    return told


def test_components_that_listen_are_found() -> None:
    assert {(key.type, key.path) for key in LISTENING} >= {
        ("otlp", "protocols.grpc.endpoint"),
        ("otlp", "protocols.http.endpoint"),
        ("viewer", "endpoint"),
        ("viewer", "otlp_endpoint"),
    }


@pytest.mark.parametrize("key", LISTENING, ids=lambda key: f"{key.type}.{key.path}")
def test_whatever_component_listens_beyond_loopback_is_refused_or_says_so_and_is_warned_of(key: Key) -> None:
    with pytest.raises(ValidationError) as refused:
        configured(key)
    assert "can be reached from other machines" in str(refused.value)
    assert "allow_unauthenticated: true" in str(refused.value)
    assert warned(configured(key, allow_unauthenticated=True))
    configured(key, allow_unauthenticated=False, auth={"authenticator": "bearertokenauth"})


def test_every_other_address_of_a_component_is_one_that_it_connects_to() -> None:
    unknown = {key.id for key in KEYS if not (key.listens or key.connects)} - CLIENTS
    assert unknown == set(), "type it Endpoint where it listens, ClientEndpoint where it connects"
    assert {key.id for key in KEYS} >= CLIENTS
    assert set(SHOWS_NOTHING) <= {key.id for key in KEYS}


def opened(text: str) -> bool:
    if not any(name in text for name in (*OPENING, "listen")):
        return False
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            is_listening = called == "listen" and isinstance(node.func, ast.Attribute)
            if called in OPENING or is_listening:
                return True
    return False


def test_whoever_opens_a_socket_for_others_is_known() -> None:
    found = {
        str(path.relative_to(ROOT))
        for source in SOURCE_ROOTS
        for path in (ROOT / source).rglob("*.py")
        if opened(path.read_text("utf-8"))
    }
    assert found == set(OPENS), "say in OPENS who may reach it, and in docs/security.md"


@pytest.mark.parametrize("line", ["asyncio.start_server(f, '::')", "sock.listen()", "web.TCPSite(runner)"])
def test_a_socket_that_is_opened_is_seen(line: str) -> None:
    assert opened(line)
