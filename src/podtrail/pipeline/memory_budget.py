"""The memory that all components of a configuration may hold, and whether their bounds fit into it.

The limit is that of `memory_limiter`, else the container's. From it the process itself is taken off. Memories that only
enrich take shares of the rest (`Context.memory_budget`) where the configuration does not say how much they may take.
"""

from collections.abc import Iterator
from typing import Final

from podtrail.component import BoundsMemory, LimitsMemory
from podtrail.pipeline.settings import Settings

PROCESS_BYTES: Final = 100 << 20
"""Resident memory of a podtrail that holds nothing."""
_LEAST: Final = 16 << 20
_CONTAINER_SHARE: Final = 0.8
"""Of a container's limit: the rest is for what comes between two looks."""


def memory_budget(settings: Settings, container: int = 0) -> int:
    """Return the bytes that all components together may hold; 0 if nothing limits them.

    Args:
        settings: Say which pipelines have a `memory_limiter`; the smallest limit counts.
        container: Bytes that the container may use; 0 if nothing limits it.
    """
    used = {id for pipeline in settings.pipelines for id in pipeline.processors}
    configs = [settings.processors[id].config for id in sorted(used)]
    allowed = [config.allowed_bytes() for config in configs if isinstance(config, LimitsMemory)]
    limit = min(filter(None, allowed), default=int(container * _CONTAINER_SHARE))
    return max(limit - PROCESS_BYTES, _LEAST) if limit else 0


REPEATED_REQUESTS_BYTES: Final = 13 << 20
"""Keys of a storage's last requests, by which one that is sent again is known (`podtrail.durable.recent`)."""


def _bounds(settings: Settings, budget: int) -> Iterator[tuple[str, int]]:
    for id in sorted({pipeline.durable for pipeline in settings.pipelines if pipeline.durable is not None}):
        yield f"extensions::{id}::repeated requests", REPEATED_REQUESTS_BYTES
    running = [("extensions", id, 1) for id in settings.service.extensions]
    for section in ("processors", "exporters"):
        ids = [id for pipeline in settings.pipelines for id in getattr(pipeline, section)]
        # Each pipeline has processors of its own, and shares exporters.
        running += [(section, id, ids.count(id) if section == "processors" else 1) for id in dict.fromkeys(ids)]
    for section, id, instances in running:
        config = settings.sections[section][id].config
        if isinstance(config, BoundsMemory):
            for key, size in config.memory_bounds(budget).items():
                yield f"{section}::{id}::{key}", size * instances


def excess(settings: Settings, budget: int) -> str:
    """Return a warning if bounds add up to more than the budget; "" if they fit, or nothing limits them."""
    found = dict(_bounds(settings, budget))
    total = sum(found.values())
    if not budget or total <= budget:
        return ""
    largest = sorted(found.items(), key=lambda one: -one[1])
    listed = ", ".join(f"{key} {size >> 20} MiB" for key, size in largest if size >> 20)
    return (
        f"components may keep {total >> 20} MiB in memory, but the limit leaves them {budget >> 20} MiB (besides "
        f"{PROCESS_BYTES >> 20} MiB for the process itself): spans may be refused for long; raise limit_mib, or lower: "
        f"{listed}"
    )
