"""The components of a graph: those that a reload leaves as they are go on, the others are made."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from podtrail.component import (
    AuthenticatorConfig,
    Exporter,
    Extension,
    Receiver,
    StoringConfig,
    TransactionalExporter,
    TransactionalReceiver,
    WantsAuthenticators,
    WantsStorage,
)
from podtrail.config.authentication import references
from podtrail.config.types import DeliverySettings
from podtrail.pipeline.host import Host
from podtrail.pipeline.running import Running
from podtrail.pipeline.sending import SendingQueue
from podtrail.pipeline.settings import ComponentSettings, Settings
from podtrail.storage import StorageProvider


class GraphComponents:
    """Extensions, receivers and exporters with their queues; made, not started."""

    def __init__(self, settings: Settings, host: Host, before: "GraphComponents | None" = None) -> None:
        """Make what is configured.

        Args:
            settings: say which components, and how.
            host: makes them.
            before: on reload, those of the graph that is followed.

        Raises:
            StartError: one can't be made; the text names it.
        """
        self._settings = settings
        self._host = host
        self._before = before
        self.extensions: dict[str, Running[Extension]] = {}
        for id in self._authenticators_first(settings.service.extensions):
            self.extensions[id] = self._extension(id)
        used = dict.fromkeys(id for pipeline in settings.pipelines for id in pipeline.receivers)
        self.receivers = {id: self._receiver(id) for id in used}
        used = dict.fromkeys(id for pipeline in settings.pipelines for id in pipeline.exporters)
        self.exporters = {id: self._exporter(id) for id in used}
        self.queues = {id: self._queue(id) for id in used}
        self._before = None  # of no use any more

    def _receiver(self, id: str) -> Running[Receiver]:
        settings = self._settings.receivers[id]
        before = self._before.receivers.get(id) if self._before else None
        storage = self._storage_of(settings)
        if before and self._before and self._goes_on(before, settings):
            theirs = self._before._storage_of(settings)
            if theirs is storage:
                return before
        made: Running[Receiver] = self._made(settings)
        if storage is not None and isinstance(made.component, WantsStorage):
            made.component.keep_in(storage)
        return made

    def _storage_of(self, receiver: ComponentSettings) -> Extension | None:
        """Return the storage in which a receiver keeps how far it has come."""
        config = receiver.config
        if not isinstance(config, StoringConfig) or config.storage is None:
            return None
        return self.extensions[config.storage].component

    def _extension(self, id: str) -> Running[Extension]:
        settings = self._settings.extensions[id]
        before = self._before.extensions.get(id) if self._before else None
        if before and before.started and self._goes_on(before, settings):
            return before
        return self._made(settings)

    def _exporter(self, id: str) -> Running[Exporter]:
        settings = self._settings.exporters[id]
        before = self._before.exporters.get(id) if self._before else None
        within = self._transactions_of(id)
        if (
            before
            and self._before
            and before.started
            and self._goes_on(before, settings)
            and self._before._transactions_of(id) is within
        ):
            return before
        made: Running[Exporter] = self._made(settings)
        if within is not None and isinstance(made.component, TransactionalExporter):
            made.component.produce_within(within)
        return made

    def _transactions_of(self, exporter: str) -> object | None:
        """Return what an exporter writes in, if a receiver of its pipelines has transactions."""
        for pipeline in self._settings.pipelines:
            if exporter in pipeline.exporters:
                for id in pipeline.receivers:
                    receiver = self.receivers[id].component
                    if isinstance(receiver, TransactionalReceiver) and receiver.transactions is not None:
                        transactions: object = receiver.transactions
                        return transactions
        return None

    def _made(self, settings: ComponentSettings) -> Running[Any]:
        metrics = self._host.metrics.owned()
        context = replace(self._host, metrics=metrics).context(settings.id, resumed=self._before is not None)
        made = Running(settings, self._host.make(settings, context), self._host.failures(settings.id), metrics)
        if isinstance(made.component, WantsAuthenticators):
            made.component.authenticate_by(self._authenticators_of(settings))
        return made

    def _goes_on(self, before: Running[Any], settings: ComponentSettings) -> bool:
        """Tell whether a component of the predecessor is what is configured, down to its authenticators."""
        assert self._before is not None
        theirs = self._before._authenticators_of(before.settings)
        return before.settings == settings and theirs == self._authenticators_of(settings)

    def _authenticators_of(self, settings: ComponentSettings) -> dict[str, Extension]:
        """Return the authenticators that a component's configuration names, by id."""
        named = {auth.authenticator for _, auth in references(settings.config)}
        return {id: self.extensions[id].component for id in sorted(named)}

    def _authenticators_first(self, ids: Sequence[str]) -> Sequence[str]:
        """Return ids of extensions, those first that others may name."""
        configured = self._settings.extensions
        return sorted(ids, key=lambda id: not isinstance(configured[id].config, AuthenticatorConfig))

    def _queue(self, id: str) -> Running[SendingQueue]:
        running = self.exporters[id]
        config = running.settings.config
        delivery = config if isinstance(config, DeliverySettings) else None
        storage = self._storage(delivery)
        durable = all(p.outlives for p in self._settings.pipelines if id in p.exporters)
        before = self._before.queues.get(id) if self._before else None
        same = self._before is not None and self._before.exporters.get(id) is running
        if (
            before
            and before.started
            and same
            and (before.component.storage, before.component.durable) == (storage, durable)
        ):
            return before
        metrics, context = self._host.metrics.owned(), self._host.context(id)
        predecessor = before.component if before else None
        queue = SendingQueue(
            running.component,
            id,
            delivery,
            metrics,
            context.log,
            rng=context.rng,
            storage=storage,
            durable=durable,
            predecessor=predecessor,
            tracer=self._host.tracer,
        )
        return Running(running.settings, queue, running.failures, metrics)

    def _storage(self, delivery: DeliverySettings | None) -> StorageProvider | None:
        """Return where a queue is kept on disk, if it is."""
        if delivery is None or not delivery.sending_queue.enabled or delivery.sending_queue.storage is None:
            return None
        storage = self.extensions[delivery.sending_queue.storage].component
        assert isinstance(storage, StorageProvider), "the settings name a storage"
        return storage
