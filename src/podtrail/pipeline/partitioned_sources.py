"""Pipelines that partitioned receivers feed: each partition has processors of its own, which nothing else can feed."""

from collections.abc import Mapping, Sequence
from typing import Any

from podtrail.component import PartitionAwareConfig, StoringConfig
from podtrail.config.nodes import MapNode, descend, item_path, place_of
from podtrail.config.problem import Path
from podtrail.config.validation import Validator

_OWN = "give it a pipeline of its own, with the same processors and exporters"


class PartitionedSources:
    """Looks at what feeds pipelines; problems gather in the validator."""

    def __init__(self, check: Validator, root: MapNode, sections: Mapping[str, Mapping[str, Any]]) -> None:
        """Look at `root`.

        Args:
            check: gathers problems.
            root: the configuration.
            sections: its components by section and id, None for one that is wrong.
        """
        self._check = check
        self._root = root
        self._sections = sections

    def feed(self, pipeline: Path, receivers: Sequence[str], processors: Sequence[str], durable: str | None) -> bool:
        """Say whether a partitioned receiver feeds a pipeline.

        Args:
            pipeline: where it stands.
            receivers: the ids of those that feed it.
            processors: the ids of what is in it.
            durable: the storage that it names, or that one of its processors does.
        """
        known = {id: found for id in receivers if (found := self._sections["receivers"].get(id)) is not None}
        first = next((id for id, found in known.items() if found.factory.partitioned), None)
        if first is None:
            return False
        for id, found in known.items():
            if id != first:
                already = " already" if found.factory.partitioned else ""
                self._check.problem(
                    item_path(self._root, (*pipeline, "receivers"), id),
                    f"receiver {id!r} can't feed a pipeline that {first!r} feeds{already}: each partition has "
                    "processors of its own",
                    f"{_OWN}; or have {first!r} read all topics" if already else _OWN,
                    value=True,
                )
        if durable is not None:
            self._refuse_store(pipeline, first, processors, durable)
        self._warn_of_processors(pipeline, first, processors)
        return True

    def _refuse_store(self, pipeline: Path, receiver: str, processors: Sequence[str], durable: str) -> None:
        paths = [(*pipeline, "durable")] if descend(self._root, (*pipeline, "durable")) is not None else []
        for id in processors:
            found = self._sections["processors"].get(id)
            if found is not None and isinstance(found.config, StoringConfig) and found.config.storage == durable:
                paths.append(("processors", id, "storage"))
        for path in paths:
            self._check.problem(
                path,
                f"{self._fed(pipeline, receiver)}, whose records are read again after a crash",
                "remove it: such a pipeline needs no storage",
                value=True,
            )

    def _warn_of_processors(self, pipeline: Path, receiver: str, processors: Sequence[str]) -> None:
        for id in processors:
            found = self._sections["processors"].get(id)
            if found is None or not isinstance(found.config, PartitionAwareConfig):
                continue
            for below, text in found.config.warnings_in_partitions():
                fed = self._fed(pipeline, receiver)
                self._check.warn(("processors", id, *below), f"where {fed}: {text}")

    def _fed(self, pipeline: Path, receiver: str) -> str:
        return f"{pipeline[-1]} is fed by {receiver!r} ({place_of(self._root, ('receivers', receiver))})"
