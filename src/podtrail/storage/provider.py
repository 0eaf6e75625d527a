"""What an extension is that others keep things with, as the Collector's storage extensions are."""

from typing import Protocol, runtime_checkable

from podtrail.storage.journal import Journal


@runtime_checkable
class StorageProvider(Protocol):
    """Keeps journals."""

    async def open(self, name: str) -> Journal:
        """Open the journal of that name (`exporter_otlp_grpc_backup`), made on first use; to be closed by the caller.

        Raises:
            StorageError: it can't be opened, or is open already.
        """
