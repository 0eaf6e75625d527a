"""Counts the bytes of a request while it arrives, and asks (of `memory_limiter`) whether more may come."""

from collections.abc import Callable
from types import TracebackType
from typing import Self

from podtrail.component import IncomingBytes

_UNASKED = 4 << 20
"""Bytes that all clients together may send unasked. So small requests are read whole, and their spans are counted."""
_UNASKED_OF_ONE = 1 << 20
"""Bytes that one request may have unasked: to read one takes many times its size."""


def _always() -> None:
    return


class IncomingRequest:
    """Counts what a request takes until it is left, that is: taken, refused or given up."""

    def __init__(self, arriving: IncomingBytes | None = None, ask: Callable[[], None] = _always) -> None:
        """Count into `arriving`; `ask` is called for every piece and refuses with a `RequestError`."""
        self._arriving = arriving or IncomingBytes()
        self._ask = ask
        self._bytes = 0
        self.charge: Callable[[int], None] | None = None
        """Told of every piece: the bytes that its client may send."""

    def add(self, size: int) -> None:
        """So many bytes came, or came out of the decompressor.

        Raises:
            RequestError: there is no room for them.
        """
        self._bytes += size
        self._arriving.bytes += size
        self._arriving.ever += size
        if self.charge is not None:
            self.charge(size)
        if self._arriving.bytes > _UNASKED or self._bytes > _UNASKED_OF_ONE:
            self._ask()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._arriving.bytes -= self._bytes
