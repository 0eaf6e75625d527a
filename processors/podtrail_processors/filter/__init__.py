"""`filter`: drops spans, or events of spans, that meet a condition. The Collector's processor, for traces."""

from typing import TYPE_CHECKING

from podtrail.component import Context, Factory
from podtrail_processors.filter.config import Config

if TYPE_CHECKING:
    from podtrail_processors.filter.processor import FilterProcessor


def _create(config: Config, context: Context) -> "FilterProcessor":
    from podtrail_processors.filter.processor import FilterProcessor  # the language takes time to load

    return FilterProcessor(config, context)


__all__ = ["FACTORY", "Config"]

FACTORY = Factory(kind="processor", type="filter", Config=Config, create=_create)
