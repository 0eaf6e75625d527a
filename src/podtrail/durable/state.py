"""What a checkpoint consists of: chains, what exporters owe, which requests came lately, by which configuration."""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from podtrail.durable.generation import Generation
from podtrail.durable.head import read_head, write_head
from podtrail.durable.owed import Way
from podtrail.otlp import Batch, MalformedRequest, merge
from podtrail.pipeline.checkpoint import ChainState
from podtrail.pipeline.sending.stored_batch import parts, read_batch, write_batch
from podtrail.storage import Entry

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class PipelineStates:
    """The state of all durable pipelines of a store at one moment."""

    generation: Generation
    reached: Mapping[str, int]
    """The time that each pipeline was told last, Unix nanoseconds."""
    chains: Mapping[str, ChainState | bytes]
    """By pipeline, as a `Checkpointer` takes and restores them: in bytes where they were read."""
    owed: Sequence[tuple[Way, Batch]]
    recent: bytes
    """Requests that came lately (`RecentRequests.pack`)."""

    def chain(self, pipeline: str) -> bytes:
        """Return the state of a pipeline's chain in bytes."""
        chain = self.chains[pipeline]
        return b"".join(chain.pieces()) if isinstance(chain, ChainState) else chain

    def prepared(self) -> Callable[[], Sequence[bytes | memoryview]]:
        """Return what writes it in bytes, in any thread and at any time. It may fail with `CheckpointError`."""
        owed = self._owed()

        def pieces() -> Sequence[bytes | memoryview]:
            sections: list[tuple[object, Sequence[bytes | memoryview]]] = [("recent", [self.recent])]
            for pipeline, chain in self.chains.items():
                sections.append(({"chain": pipeline}, chain.pieces() if isinstance(chain, ChainState) else [chain]))
            sections += owed
            head = {
                "generation": asdict(self.generation),
                "reached": self.reached,
                "sections": [(what, sum(map(len, content))) for what, content in sections],
            }
            return [write_head(_FORMAT, head), *(piece for _, content in sections for piece in content)]

        return pieces

    def _owed(self) -> Sequence[tuple[object, Sequence[bytes | memoryview]]]:
        """Return what exporters owe in bytes: verdicts are explained now, while their policies are as they are."""
        sections: list[tuple[object, Sequence[bytes | memoryview]]] = []
        for (pipeline, exporter), batch in self.owed:
            entries = [write_batch(0, part, 0) for part in parts(batch)]
            told = [(entry.kind, len(entry.note), len(entry.body)) for entry in entries]
            what = {"pipeline": pipeline, "exporter": exporter, "arrived": batch.arrived, "parts": told}
            sections.append((what, [piece for entry in entries for piece in (entry.note, entry.body)]))
        return sections

    @classmethod
    def read(cls, data: bytes) -> "PipelineStates":
        """Return what was written.

        Raises:
            ValueError: it is no such state, or one of another version.
        """
        try:
            head, at = read_head(_FORMAT, data)
            generation, reached, sections = Generation.read(head["generation"]), head["reached"], head["sections"]
            recent, chains, owed = b"", {}, []
            for what, length in sections:
                content = data[at : at + length]
                at += length
                if what == "recent":
                    recent = content
                elif "chain" in what:
                    chains[what["chain"]] = content
                else:
                    owed.append((_way(what), _batch(what, content)))
            if any(type(now) is not int for now in reached.values()):
                raise ValueError("a time in it is no number")
            if not generation.pipelines.keys() <= chains.keys() & reached.keys():
                raise ValueError("it lacks a pipeline of its own")
        except (struct.error, AttributeError, LookupError, RecursionError, TypeError, MalformedRequest) as error:
            raise ValueError(f"it is no state of pipelines: {error}") from error
        return cls(generation, reached, chains, owed, recent)


def _way(what: Mapping[str, Any]) -> Way:
    pipeline, exporter = what["pipeline"], what["exporter"]
    if not isinstance(pipeline, str) or not isinstance(exporter, str):
        raise ValueError("something in it is owed by nobody")
    return pipeline, exporter


def _batch(what: Mapping[str, Any], content: bytes) -> Batch:
    read: list[Batch] = []
    at = 0
    for kind, note, body in what["parts"]:
        entry = Entry(kind, content[at + note : at + note + body], what["arrived"], content[at : at + note])
        read.append(read_batch(entry))
        at += note + body
    whole = merge(read)
    if not whole.groups and not whole.verdicts:
        raise ValueError("a batch in it is empty")
    return whole
