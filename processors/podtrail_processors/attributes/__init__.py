"""`attributes`: sets, copies, hashes, converts, removes attributes of spans. The Collector's processor, for traces."""

from typing import TYPE_CHECKING

from podtrail.component import Context, Factory
from podtrail_processors.attributes.config import Config

if TYPE_CHECKING:
    from podtrail_processors.attributes.processor import Attributes


def _create(config: Config, context: Context) -> "Attributes":
    from podtrail_processors.attributes.processor import Attributes

    return Attributes(config, context)


__all__ = ["FACTORY", "Config"]

FACTORY = Factory(kind="processor", type="attributes", Config=Config, create=_create)
