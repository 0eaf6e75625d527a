"""Which configuration the durable pipelines of a store had: by it alone a checkpoint can be read."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from podtrail.pipeline.settings import PipelineSettings, ServiceSettings, Settings, written_processor


@dataclass(frozen=True, slots=True)
class Generation:
    """The durable pipelines of a store, as far as it matters for what leaves them."""

    pipelines: Mapping[str, Mapping[str, Sequence[str]]]
    """Ids of receivers, processors and exporters, by pipeline."""
    processors: Mapping[str, Any]
    """Their configurations as the user wrote them, references resolved."""
    gates: Sequence[str]

    @classmethod
    def of(cls, settings: Settings, pipelines: Iterable[PipelineSettings]) -> Self:
        """Return what is configured, as it would be read back."""
        parts = {
            p.id: {"receivers": p.receivers, "processors": p.processors, "exporters": p.exporters} for p in pipelines
        }
        ids = dict.fromkeys(id for part in parts.values() for id in part["processors"])
        written = {id: settings.processors[id].written for id in ids}
        return cls.read(json.loads(json.dumps(asdict(cls(parts, written, sorted(settings.gates))))))

    @classmethod
    def read(cls, content: Any) -> Self:
        """Return what `asdict` told.

        Raises:
            ValueError: it did not.
        """
        try:
            pipelines, processors, gates = content["pipelines"], content["processors"], content["gates"]
            parts = [(part["receivers"], part["processors"], part["exporters"]) for part in pipelines.values()]
            if not isinstance(processors, dict) or not all(
                map(_are_names, (gates, *(p for part in parts for p in part)))
            ):
                raise ValueError("ids stand elsewhere in it")
            if missing := {id for part in parts for id in part[1]} - processors.keys():
                raise ValueError(f"it says nothing of {', '.join(sorted(missing))}")
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"it says nothing of {error}") from error
        return cls(pipelines, processors, gates)

    def settings(self) -> Settings:
        """Return the settings of these processors in these pipelines, and of nothing else.

        Raises:
            ConfigError: this podtrail can't read one of them.
            ValueError: one has a name that is no id.
        """
        gates = frozenset(self.gates)
        processors = {id: written_processor(id, written, gates) for id, written in self.processors.items()}
        pipelines = tuple(
            PipelineSettings(id, tuple(part["receivers"]), tuple(part["processors"]), tuple(part["exporters"]))
            for id, part in self.pipelines.items()
        )
        return Settings({}, processors, {}, {}, pipelines, ServiceSettings(), gates)


def _are_names(told: Any) -> bool:
    return isinstance(told, list) and all(isinstance(name, str) for name in told)
