"""The `file_storage` extension: keeps queues and undecided traces on disk, with the keys of the Collector's."""

from typing import Any

from podtrail.component import Context, Factory
from podtrail_extensions.file_storage.config import Config


def _create(config: Config, context: Context) -> Any:
    from podtrail_extensions.file_storage.extension import FileStorage

    return FileStorage(config, context)


FACTORY = Factory(kind="extension", type="file_storage", stores=True, Config=Config, create=_create)
