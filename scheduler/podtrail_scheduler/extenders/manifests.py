"""Pods and nodes as the watches showed them, whole: an extender is sent more than scheduling reads."""

from collections.abc import Mapping
from typing import Any, Protocol

from podtrail_scheduler.framework.extending import ExtenderError
from podtrail_scheduler.objects import Pod


class Manifests(Protocol):
    """Gives an object as the API has it, to send it to an extender. Raises ExtenderError for one that is not known."""

    def pod(self, pod: Pod) -> Mapping[str, Any]:
        """The Pod's JSON."""
        ...

    def node(self, name: str) -> Mapping[str, Any]:
        """The JSON of the node of that name."""
        ...


class WatchedManifests:
    """Fed by whoever watches, with every object that comes, changes and goes."""

    def __init__(self) -> None:
        self._pods: dict[str, Mapping[str, Any]] = {}
        self._nodes: dict[str, Mapping[str, Any]] = {}

    def put_pod(self, manifest: Mapping[str, Any]) -> None:
        """A Pod is there, or changed."""
        self._pods[manifest["metadata"]["uid"]] = manifest

    def remove_pod(self, manifest: Mapping[str, Any]) -> None:
        """A Pod is gone."""
        self._pods.pop(manifest["metadata"]["uid"], None)

    def put_node(self, manifest: Mapping[str, Any]) -> None:
        """A node is there, or changed."""
        self._nodes[manifest["metadata"]["name"]] = manifest

    def remove_node(self, manifest: Mapping[str, Any]) -> None:
        """A node is gone."""
        self._nodes.pop(manifest["metadata"]["name"], None)

    def pod(self, pod: Pod) -> Mapping[str, Any]:
        """The Pod's JSON.

        Raises:
            ExtenderError: it has gone meanwhile.
        """
        if pod.uid not in self._pods:
            raise ExtenderError(f'pod "{pod.key}" not found')
        return self._pods[pod.uid]

    def node(self, name: str) -> Mapping[str, Any]:
        """The JSON of a node.

        Raises:
            ExtenderError: it has gone meanwhile.
        """
        if name not in self._nodes:
            raise ExtenderError(f'node "{name}" not found')
        return self._nodes[name]
