"""One extender: what it is asked and what it answers. Field names on the wire are Go's (`Pod`, `NodeNames`)."""

import json
import ssl
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from podtrail_scheduler.configuration import types
from podtrail_scheduler.configuration.types import Extender, ExtenderTLSConfig
from podtrail_scheduler.framework.extending import ExtenderError, PodsOn, Victims
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.objects.durations import SECOND

from .manifests import Manifests

SCALE = 10
"""An extender scores from 0 to 10, plugins from 0 to 100."""


class FilterAnswer(NamedTuple):
    """The names of the nodes that are left, and why the others are not, by name."""

    nodes: tuple[str, ...]
    failed: Mapping[str, str]
    unresolvable: Mapping[str, str]


class HTTPExtender:
    """An HTTP extender. Calls share the `session`, which belongs to the caller; each is bounded by `httpTimeout`."""

    def __init__(self, configuration: types.Extender, session: aiohttp.ClientSession, manifests: Manifests) -> None:
        """An extender as its configuration says.

        Raises:
            ExtenderError: certificates can't be used.
        """
        self.configuration = configuration
        self.name = configuration.url_prefix
        self.ignorable = configuration.ignorable
        self.binds = bool(configuration.bind_verb)
        self.filters = bool(configuration.filter_verb)
        self.prioritizes = bool(configuration.prioritize_verb)
        self.preempts = bool(configuration.preempt_verb)
        self._session = session
        self._manifests = manifests
        self._managed = frozenset(each.name for each in configuration.managed_resources)
        try:
            self._tls = _tls_of(configuration)
        except (OSError, ssl.SSLError, ValueError) as error:
            raise ExtenderError(f"extender {self.name}: tlsConfig: {error}") from error

    def interested(self, pod: Pod) -> bool:
        """Whether it is asked about `pod`: always, or when the Pod requests a resource that it manages."""
        return not self._managed or not self._managed.isdisjoint(pod.requests)

    async def filter(self, pod: Pod, nodes: Sequence[str]) -> FilterAnswer:
        """Which of `nodes` are left; all of them without a filter verb.

        Raises:
            ExtenderError: it can't be reached, or answers with an error.
        """
        if not self.filters:
            return FilterAnswer(tuple(nodes), {}, {})
        answer = await self._ask(self.configuration.filter_verb, self._args(pod, nodes))
        if failure := _text(answer, "Error"):
            raise ExtenderError(failure)
        left = self._left(answer, frozenset(nodes))
        return FilterAnswer(left, _texts(answer, "FailedNodes"), _texts(answer, "FailedAndUnresolvableNodes"))

    async def prioritize(self, pod: Pod, nodes: Sequence[str]) -> Mapping[str, int]:
        """Scores by node, times the weight and on the scale of plugins; none without the verb.

        Raises:
            ExtenderError: it can't be reached, or answers with an error.
        """
        if not self.prioritizes:
            return {}
        answer = await self._ask(self.configuration.prioritize_verb, self._args(pod, nodes))
        factor = self.configuration.weight * SCALE
        return {_text(each, "Host"): _integer(each, "Score") * factor for each in _list(answer, "HostPriorityList")}

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Has the extender bind.

        Raises:
            ExtenderError: it can't be reached, or answers with an error.
        """
        arguments = {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node_name}
        answer = await self._ask(self.configuration.bind_verb, arguments)
        if failure := _text(answer, "Error"):
            raise ExtenderError(failure)

    async def preempt(self, pod: Pod, victims: Mapping[str, Victims], pods_on: PodsOn) -> dict[str, Victims]:
        """Which nodes are left as candidates and with which victims.

        Raises:
            ExtenderError: it can't be reached, or answers with an error.
        """
        arguments: dict[str, Any] = {"Pod": self._manifests.pod(pod)}
        if self.configuration.node_cache_capable:
            arguments["NodeNameToVictims"] = None
            arguments["NodeNameToMetaVictims"] = {
                node: {"Pods": [{"UID": each.uid} for each in some.pods], "NumPDBViolations": some.violations}
                for node, some in victims.items()
            }
        else:
            arguments["NodeNameToMetaVictims"] = None
            arguments["NodeNameToVictims"] = {
                node: {"Pods": [self._manifests.pod(each) for each in some.pods], "NumPDBViolations": some.violations}
                for node, some in victims.items()
            }
        answer = await self._ask(self.configuration.preempt_verb, arguments)
        chosen = _mapping(_field(answer, "NodeNameToMetaVictims"), "NodeNameToMetaVictims")
        return {node: self._victims(node, each, pods_on) for node, each in chosen.items()}

    def _victims(self, node: str, given: Any, pods_on: PodsOn) -> Victims:
        here = pods_on(node)
        if here is None:
            raise ExtenderError(f'nodeinfo not found for node name "{node}"')
        by_uid = {pod.uid: pod for pod in here}
        pods = []
        for each in _list(_field(given, "Pods"), "Pods"):
            uid = _text(each, "UID")
            if uid not in by_uid:
                raise ExtenderError(
                    f"extender: {self.name} claims to preempt pod (UID: &{{{uid}}}) on node: {node}, "
                    "but the pod is not found on that node"
                )
            pods.append(by_uid[uid])
        return Victims(tuple(pods), _integer(given, "NumPDBViolations"))

    def _args(self, pod: Pod, nodes: Sequence[str]) -> dict[str, Any]:
        manifest = self._manifests.pod(pod)
        if self.configuration.node_cache_capable:
            return {"Pod": manifest, "Nodes": None, "NodeNames": list(nodes)}
        items = [self._manifests.node(name) for name in nodes]
        return {"Pod": manifest, "Nodes": {"metadata": {}, "items": items}, "NodeNames": None}

    def _left(self, answer: Any, known: frozenset[str]) -> tuple[str, ...]:
        names = _field(answer, "NodeNames")
        if not self.configuration.node_cache_capable or names is None:
            nodes = _field(answer, "Nodes")
            items = _list(_field(nodes, "items"), "items") if nodes is not None else []
            return tuple(_text(_field(node, "metadata"), "name") for node in items)
        for name in _list(names, "NodeNames"):
            if name not in known:
                claim = f'extender "{self.name}" claims a filtered node "{name}"'
                raise ExtenderError(f"{claim} which is not found in the input node list")
        return tuple(names)

    async def _ask(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        url = f"{self.name.rstrip('/')}/{verb}"
        seconds = self.configuration.http_timeout / SECOND
        given = self.configuration.tls_config
        try:
            async with self._session.post(
                url,
                json=arguments,
                ssl=self._tls,
                server_hostname=(given.server_name or None) if given and url.startswith("https:") else None,
                timeout=aiohttp.ClientTimeout(total=seconds),
            ) as response:
                if response.status != 200:
                    raise ExtenderError(f"failed {verb} with extender at URL {url}, code {response.status}")
                return json.loads(await response.read())
        except TimeoutError as error:
            exceeded = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            raise ExtenderError(f'Post "{url}": {exceeded}') from error
        except (aiohttp.ClientError, OSError) as error:
            raise ExtenderError(f'Post "{url}": {error}') from error
        except ValueError as error:
            raise ExtenderError(f"extender {self.name}: {verb}: answer is no JSON: {error}") from error


def _field(answer: Any, name: str) -> Any:
    """The field as Go finds it: by its name in any case."""
    given = _mapping(answer, f"an object with {name}")
    if name in given:
        return given[name]
    return next((value for key, value in given.items() if key.lower() == name.lower()), None)


def _text(answer: Any, name: str) -> str:
    return str(_field(answer, name) or "")


def _integer(answer: Any, name: str) -> int:
    value = _field(answer, name) or 0
    if not isinstance(value, int):
        raise ExtenderError(f"{name}: an integer was wanted from the extender, got {value!r}")
    return value


def _texts(answer: Any, name: str) -> dict[str, str]:
    return {str(key): str(value) for key, value in _mapping(_field(answer, name), name).items()}


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ExtenderError(f"{what} was wanted from the extender, got {type(value).__name__}")
    return value


def _list(value: Any, what: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ExtenderError(f"a list of {what} was wanted from the extender, got {type(value).__name__}")
    return value


def _tls_of(extender: Extender) -> ssl.SSLContext:
    """The context for an extender's connections, as client-go does it: without an authority, none is checked.

    Raises:
        OSError: a file can't be read.
        ssl.SSLError: a file holds no certificate or key.
    """
    given = extender.tls_config or ExtenderTLSConfig()
    trusted = given.ca_data.decode("ascii") if given.ca_data else None
    context = ssl.create_default_context(cafile=given.ca_file or None if not trusted else None, cadata=trusted)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Python's default since 3.13; Go asks for no more than is needed
    unchecked = extender.enable_https and not (given.ca_data or given.ca_file)
    if given.insecure or unchecked:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if given.cert_data or given.cert_file:
        _load_certificate(context, given)
    return context


def _load_certificate(context: ssl.SSLContext, given: ExtenderTLSConfig) -> None:
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = given.cert_file, given.key_file
        if given.cert_data:
            certificate = str(Path(folder) / "tls.crt")
            Path(certificate).write_bytes(given.cert_data)
        if given.key_data:
            key = str(Path(folder) / "tls.key")
            Path(key).touch(0o600)
            Path(key).write_bytes(given.key_data)
        context.load_cert_chain(certificate, key or None)
