"""Keys that name a storage: each must be an extension that is configured, is a storage, and is started."""

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from podtrail.component import StoringConfig
from podtrail.config.nodes import MapNode, ScalarNode, descend
from podtrail.config.problem import Path, did_you_mean
from podtrail.config.types import DeliverySettings
from podtrail.config.validation import Validator


@runtime_checkable
class KeepsFolder(Protocol):
    """The configuration of a storage that keeps everything in one folder."""

    @property
    def directory(self) -> str:
        """The folder."""


class StorageReferences:
    """Looks at what a configuration says of storages; problems gather in the validator."""

    def __init__(
        self,
        check: Validator,
        root: MapNode,
        sections: Mapping[str, Mapping[str, Any]],
        extensions: Collection[str],
    ) -> None:
        """Look at `root`.

        Args:
            check: gathers problems.
            root: the configuration.
            sections: its components by section and id, None for one that is wrong.
            extensions: ids of those that are started.
        """
        self._check = check
        self._root = root
        self._sections = sections
        self._extensions = extensions
        self._named: set[str] = set()
        """Those that something is kept in."""

    def at(self, path: Path) -> str | None:
        """Return the id of the storage that is named at a path; None when none is, or what is named is none."""
        node = descend(self._root, path)
        if node is None or (isinstance(node, ScalarNode) and node.value is None):
            return None
        text = node.value if isinstance(node, ScalarNode) else None
        if not isinstance(text, str):
            hint = "write for example file_storage"
            self._check.problem(path, "must be the id of a storage extension", hint, value=True)
            return None
        configured = self._sections["extensions"]
        if text not in configured:
            storages = [id for id, found in configured.items() if found is not None and found.factory.stores]
            hint = did_you_mean(text, storages, "storages configured") if storages else "configure it under extensions"
            self._check.problem(path, f'references extension "{text}" which is not configured', hint, value=True)
        elif (found := configured[text]) is not None and not found.factory.stores:
            self._check.problem(path, f"{text} is no storage", "name a file_storage", value=True)
        elif text not in self._extensions:
            message = f'references extension "{text}" which is not started'
            self._check.problem(path, message, "list it in service::extensions", value=True)
        else:
            self._named.add(text)
            return text
        return None

    def of_pipeline(self, path: Path, processors: Sequence[str]) -> str | None:
        """Return the storage of a pipeline, named at `path` or by a processor: what it holds is what came in."""
        storage = self.at(path)
        for id in processors:
            found = self._sections["processors"].get(id)
            if found is None or not isinstance(found.config, StoringConfig):
                continue
            asked = self.at(("processors", id, "storage"))
            if storage and asked and asked != storage:
                self._check.problem(
                    ("processors", id, "storage"),
                    f"a pipeline that it is in is durable by {storage}, not {asked}",
                    "name one storage in both, or leave it out here",
                    value=True,
                )
            storage = storage or asked
        node = descend(self._root, path)
        if storage is None and isinstance(node, ScalarNode) and node.value is None:
            self._check.warn(path, "is empty: nothing is durable", "name a file_storage, or remove it")
        return storage

    def check_queues(self, exporters: Collection[str]) -> None:
        """Check the storages of persistent queues."""
        for id in sorted(exporters):
            found = self._sections["exporters"].get(id)
            if found is not None and isinstance(found.config, DeliverySettings):
                self.at(("exporters", id, "sending_queue", "storage"))

    def check_receivers(self, receivers: Collection[str]) -> None:
        """Check the storages of receivers that keep how far they have come."""
        for id in sorted(receivers):
            found = self._sections["receivers"].get(id)
            if found is not None and isinstance(found.config, StoringConfig):
                self.at(("receivers", id, "storage"))

    def refuse_two_logs(self, durable: Sequence[tuple[str, Sequence[str], str]]) -> None:
        """What a receiver hands over is written once: all durable pipelines that it feeds share a storage.

        Args:
            durable: the durable pipelines: id, receivers, storage.
        """
        first: dict[str, tuple[str, str]] = {}
        for pipeline, receivers, storage in durable:
            for receiver in receivers:
                other, theirs = first.setdefault(receiver, (pipeline, storage))
                if theirs != storage:
                    self._check.problem(
                        ("service", "pipelines", pipeline, "durable"),
                        f"receiver {receiver!r} also feeds {other}, which is durable by {theirs}",
                        "use one storage for both",
                        value=True,
                    )

    def refuse_shared_folders(self) -> None:
        """A folder has one owner: the second would not start."""
        first: dict[str, str] = {}
        for id in self._started_storages():
            config = self._sections["extensions"][id].config
            if not isinstance(config, KeepsFolder):
                continue
            other = first.setdefault(os.path.realpath(config.directory), id)
            if other != id:
                path = ("extensions", id, "directory")
                message = f"is the folder of extension {other!r} already"
                self._check.problem(path, message, "give each its own directory", value=True)

    def warn_of_unused(self) -> None:
        """Warn of storages that are started and keep nothing; to be called when all references were looked at."""
        for id in self._started_storages():
            if id not in self._named:
                at = list(self._extensions).index(id)
                hint = "name it as durable of a pipeline or sending_queue::storage of an exporter, or leave it out"
                self._check.warn(("service", "extensions", at), f"{id} is started, but nothing is kept in it", hint)

    def _started_storages(self) -> Sequence[str]:
        found = ((id, self._sections["extensions"].get(id)) for id in self._extensions)
        return [id for id, extension in found if extension is not None and extension.factory.stores]
