"""Files that a restart would empty though what they have does not come again: it counts as delivered."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from podtrail.component import StoringConfig
from podtrail.config.problem import Path
from podtrail.pipeline.loops import WritesFiles

HINT: Final = "append: true"


@runtime_checkable
class MayAppend(WritesFiles, Protocol):
    """An exporter's configuration that says whether files are continued."""

    @property
    def append(self) -> bool:
        """Whether they are; otherwise a start empties them."""


class LastingPipeline(NamedTuple):
    """What a pipeline leads from and to, by id."""

    id: str
    receivers: Sequence[str]
    exporters: Sequence[str]
    durable: str | None


def begun_anew(
    pipelines: Sequence[LastingPipeline], receivers: Mapping[str, Any], exporters: Mapping[str, Any]
) -> Iterator[tuple[Path, str]]:
    """Yield what is hardly meant between components, None for one that is wrong: the path of a key, and a message."""
    for pipeline in pipelines:
        why = _goes_on(pipeline, receivers)
        for id in pipeline.exporters if why else ():
            found = exporters.get(id)
            if found is not None and isinstance(found.config, MayAppend) and not found.config.append:
                files = " and ".join(found.config.writes().values())
                message = f"every start empties {files}; what was delivered there does not come again: {why}"
                yield ("exporters", id, "append"), message


def _goes_on(pipeline: LastingPipeline, receivers: Mapping[str, Any]) -> str:
    """Return why a pipeline goes on after a restart where it was; "" where it begins anew as its files do."""
    if pipeline.durable is not None:
        return f"{pipeline.id} is durable by {pipeline.durable}"
    for id in pipeline.receivers:
        found = receivers.get(id)
        if found is None:
            continue
        if found.factory.partitioned or (isinstance(found.config, StoringConfig) and found.config.storage is not None):
            return f"{id}, which feeds {pipeline.id}, goes on where it was"
    return ""
