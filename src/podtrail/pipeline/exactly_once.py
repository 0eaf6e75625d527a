"""Pipelines whose receiver reads and whose exporter writes in one transaction: what fits together."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from podtrail.component import TransactionalConfig
from podtrail.config.nodes import MapNode, item_path, place_of
from podtrail.config.problem import Path
from podtrail.config.validation import Validator


class WiredPipeline(NamedTuple):
    """What a pipeline leads from and to, by id."""

    id: str
    receivers: Sequence[str]
    exporters: Sequence[str]


class ExactlyOnceReferences:
    """Looks at what transactions reach; problems gather in the validator."""

    def __init__(self, check: Validator, root: MapNode, sections: Mapping[str, Mapping[str, Any]]) -> None:
        """Look at `root`.

        Args:
            check: gathers problems.
            root: the configuration.
            sections: its components by section and id, None for one that is wrong.
        """
        self._check = check
        self._root = root
        self._receivers = sections["receivers"]
        self._exporters = sections["exporters"]

    def look_at(self, pipelines: Sequence[WiredPipeline]) -> None:
        """Refuse pipelines of which not everything is in the transaction."""
        first: dict[str, tuple[str, str | None]] = {}
        shared: dict[str, str] = {}
        for pipeline in pipelines:
            receiver = self._transactional(pipeline.receivers)
            path = ("service", "pipelines", pipeline.id, "exporters")
            if receiver is not None and len(pipeline.exporters) > 1:
                self._check.problem(
                    path,
                    f"must be one exporter: receiver {receiver!r} has exactly_once{self._said_by(receiver)}",
                    "give the other exporters a pipeline that reads the topic that this one writes",
                    value=True,
                )
            for exporter in pipeline.exporters:
                if receiver is not None:
                    self._look_at_exporter(item_path(self._root, path, exporter), receiver, exporter)
                    self._compare(receiver, exporter, shared.setdefault(receiver, exporter))
                other, theirs = first.setdefault(exporter, (pipeline.id, receiver))
                if theirs != receiver:
                    self._check.problem(
                        item_path(self._root, path, exporter),
                        f"exporter {exporter!r} is used by {other}, too: it writes in the transactions of "
                        f"{theirs or receiver!r} alone, which has exactly_once{self._said_by(theirs or receiver)}",
                        "give each of the two pipelines an exporter of its own",
                        value=True,
                    )

    def _transactional(self, receivers: Sequence[str]) -> str | None:
        """Return the receiver of these that reads in transactions; None: none does."""
        for id in receivers:
            found = self._receivers.get(id)
            if found is not None and isinstance(found.config, TransactionalConfig) and found.config.exactly_once:
                return id
        return None

    def _look_at_exporter(self, path: Path, receiver: str, exporter: str) -> None:
        reads, writes = self._receivers[receiver], self._exporters.get(exporter)
        if writes is None:
            return
        why = f"the transactions of {receiver!r}, which has exactly_once{self._said_by(receiver)}"
        if writes.factory.type != reads.factory.type:
            hint = f"export with {reads.factory.type} to the same brokers, or remove exactly_once"
            self._check.problem(path, f"exporter {exporter!r} can't write in {why}", hint, value=True)
            return
        if sorted(writes.config.brokers) != sorted(reads.config.brokers):
            self._check.problem(
                ("exporters", exporter, "brokers"),
                f"are not those of {why}: a transaction is of one cluster",
                f"name the same as there ({', '.join(reads.config.brokers)}), or remove exactly_once",
                value=True,
            )
        if writes.config.sending_queue.storage is not None:
            self._check.problem(
                ("exporters", exporter, "sending_queue", "storage"),
                f"would keep spans beyond {why}",
                "remove it: what is not delivered is read again from the topic",
                value=True,
            )

    def _compare(self, receiver: str, exporter: str, first: str) -> None:
        """Refuse two exporters that would have one producer do different things."""
        one, other = self._exporters.get(first), self._exporters.get(exporter)
        if one is None or other is None or one.factory.type != other.factory.type:
            return
        for key in ("producer", "record_partitioner"):
            if getattr(one.config, key, None) != getattr(other.config, key, None):
                self._check.problem(
                    ("exporters", exporter, key),
                    f"is not that of {first!r}: both write in the transactions of {receiver!r}, which has exactly_once"
                    f"{self._said_by(receiver)} and one producer",
                    "give both the same",
                )

    def _said_by(self, receiver: str | None) -> str:
        """Return where a receiver is told so, in brackets."""
        return f" ({place_of(self._root, ('receivers', receiver or '', 'exactly_once'))})"
