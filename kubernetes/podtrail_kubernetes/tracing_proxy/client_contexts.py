"""The contexts of a user's kubeconfig, and the temporary kubeconfig that leads each of them through the proxy.

A client may choose among contexts as ever (`--context`). What it is not given are addresses and credentials: these the
proxy has. Impersonation is no credential and stays with the client, which sends it as headers.
"""

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from podtrail_kubernetes.errors import RestConfigError
from podtrail_kubernetes.rest_config import library

_IMPERSONATION = ("as", "as-uid", "as-groups", "as-user-extra")
_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class ClientContext(NamedTuple):
    """What of a context a client needs besides where it leads."""

    namespace: str
    impersonation: Mapping[str, Any]


class ClientContexts(NamedTuple):
    """All contexts, by name."""

    current: str
    """Empty where none is."""
    by_name: Mapping[str, ClientContext]

    def chosen(self, name: str | None) -> str:
        """Returns the context that is meant by `name`, or by not naming one.

        Raises:
            RestConfigError: There is none of that name.
        """
        wanted = name or self.current
        if wanted in self.by_name:
            return wanted
        known = ", ".join(sorted(self.by_name)) or "none"
        what = f"no context {wanted!r}" if wanted else "no current-context"
        raise RestConfigError(f"{what} in the kubeconfig; there are: {known}")


def read_contexts(kubeconfig: str) -> ClientContexts:
    """Reads one kubeconfig, or several as the variable KUBECONFIG lists them: of equal names the first is meant.

    Raises:
        RestConfigError: One can't be read, or none is there.
    """
    current, contexts, users = "", dict[str, Any](), dict[str, Any]()
    there = [Path(each).expanduser() for each in kubeconfig.split(os.pathsep) if each]
    read = [(path, _document(path)) for path in there if path.exists()]
    if not read:
        raise RestConfigError(f"kubeconfig {kubeconfig}: no such file")
    for path, document in read:
        current = current or str(document.get("current-context") or "")
        contexts = _named(path, document, "contexts", "context") | contexts
        users = _named(path, document, "users", "user") | users
    by_name = {}
    for name, context in contexts.items():
        user = users.get(str(context.get("user"))) or {}
        impersonation = {key: user[key] for key in _IMPERSONATION if key in user}
        by_name[name] = ClientContext(str(context.get("namespace") or ""), impersonation)
    return ClientContexts(current, by_name)


def in_cluster() -> ClientContexts:
    """The one context of a Pod's ServiceAccount."""
    namespace = _NAMESPACE_FILE.read_text(encoding="utf-8").strip() if _NAMESPACE_FILE.is_file() else ""
    return ClientContexts("in-cluster", {"in-cluster": ClientContext(namespace, {})})


def write_kubeconfig(
    path: Path, contexts: ClientContexts, current: str, *, server: str, authority: bytes, tokens: Mapping[str, str]
) -> None:
    """Writes the temporary kubeconfig, for nobody else to read.

    Args:
        path: That does not exist.
        contexts: Which there are.
        current: Which of them is meant when the client names none.
        server: The proxy's URL.
        authority: The certificate to know it by.
        tokens: Of each context, by which the proxy tells which one is meant.
    """
    data = base64.b64encode(authority).decode()
    # Names of our own: a client that asks for a cluster or user of its kubeconfig by name must not get another.
    inner = {name: f"podtrail-trace-{number}" for number, name in enumerate(contexts.by_name)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current,
        "clusters": [
            {"name": name, "cluster": {"server": server, "certificate-authority-data": data}} for name in inner.values()
        ],
        "users": [
            {"name": inner[name], "user": {"token": tokens[name], **context.impersonation}}
            for name, context in contexts.by_name.items()
        ],
        "contexts": [
            {"name": name, "context": _context(inner[name], context.namespace)}
            for name, context in contexts.by_name.items()
        ],
    }
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        json.dump(config, file, indent=1)


def _context(inner: str, namespace: str) -> Mapping[str, str]:
    context = {"cluster": inner, "user": inner}
    return context | {"namespace": namespace} if namespace else context


def _document(path: Path) -> Mapping[str, Any]:
    yaml = library("config.kube_config").yaml
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RestConfigError(f"kubeconfig {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RestConfigError(f"kubeconfig {path}: not YAML: {error}") from error
    if not isinstance(document, dict):
        raise RestConfigError(f"kubeconfig {path}: is empty or no mapping; `kubectl config view` shows what one has")
    return document


def _named(path: Path, document: Mapping[str, Any], section: str, key: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    entries = document.get(section) or []
    if not isinstance(entries, list):
        raise RestConfigError(f"kubeconfig {path}: {section}: is no list")
    for number, entry in enumerate(entries):
        if not (isinstance(entry, dict) and isinstance(entry.get("name"), str) and isinstance(entry.get(key), dict)):
            raise RestConfigError(f"kubeconfig {path}: {section}[{number}]: needs a name and a mapping `{key}`")
        found.setdefault(entry["name"], entry[key])
    return found
