"""What a reload can't do: have what is kept in one place go on in another."""

import os
from collections.abc import Iterator

from podtrail.component import StartError, StoringConfig
from podtrail.config.types import DeliverySettings
from podtrail.pipeline.settings import Settings
from podtrail.pipeline.storage_references import KeepsFolder


def refuse_moves(settings: Settings, before: Settings) -> None:
    """See that what is kept under some settings is kept in the same place under those before.

    Who goes on elsewhere leaves behind what is on disk: nobody would deliver it, or the next start on it would again.

    Raises:
        StartError: it is not; the text names the key.
    """
    places = dict(_places(before))
    for key, place in _places(settings):
        left = places.get(key, place)
        if left != place:
            raise StartError(
                f"{key}: what is kept in {left} can't go on in {place} while podtrail runs: stop it, move what is "
                "there, and start it"
            )


def _places(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield where something is kept, by the key that says so: storage and folder, if it has one."""
    folders = {
        id: f"{id} ({os.path.realpath(extension.config.directory)})"
        for id, extension in settings.extensions.items()
        if isinstance(extension.config, KeepsFolder)
    }
    named = dict(_named(settings))
    for id in named.values():
        if id in folders:
            yield f"extensions::{id}::directory", folders[id]
    for key, id in named.items():
        yield key, folders.get(id, id)


def _named(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the storages that are named, by key."""
    for pipeline in settings.pipelines:
        if pipeline.durable is not None:
            yield f"service::pipelines::{pipeline.id}::durable", pipeline.durable
        for id in pipeline.exporters:
            queue = settings.exporters[id].config
            if isinstance(queue, DeliverySettings) and queue.sending_queue.enabled and queue.sending_queue.storage:
                yield f"exporters::{id}::sending_queue::storage", queue.sending_queue.storage
        for id in pipeline.receivers:
            keeping = settings.receivers[id].config
            if isinstance(keeping, StoringConfig) and keeping.storage is not None:
                yield f"receivers::{id}::storage", keeping.storage
