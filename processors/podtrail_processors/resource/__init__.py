"""`resource`: sets, copies, hashes, converts, removes attributes of resources, as the Collector's processor does."""

from typing import TYPE_CHECKING

from podtrail.component import Context, Factory
from podtrail_processors.resource.config import Config

if TYPE_CHECKING:
    from podtrail_processors.resource.processor import ResourceAttributes


def _create(config: Config, context: Context) -> "ResourceAttributes":
    from podtrail_processors.resource.processor import ResourceAttributes

    return ResourceAttributes(config, context)


__all__ = ["FACTORY", "Config"]

FACTORY = Factory(kind="processor", type="resource", Config=Config, create=_create)
