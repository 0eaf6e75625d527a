"""The exceptions that components raise on purpose, and what each means for the batch at hand.

ComponentError
├── StartError         cannot start: a port in use, a file that can't be opened
├── Unauthenticated    (authentication.py) credentials are missing or wrong
├── Refused            a batch was not taken, nothing of it was; the sender keeps it
├── Lost               a component failed on a batch, spans of it are lost; not to be offered again
└── DeliveryError      a batch was not delivered, or a part of it was not
    ├── Retryable      worth another try, not before `after` seconds
    └── Permanent      never deliverable
        └── ReadAgain  its transaction is aborted: its receiver brings it again
"""

from podtrail.otlp import Batch


class ComponentError(Exception):
    """Base of what components raise on purpose."""


class StartError(ComponentError):
    """A component can't start; the text says what to mend."""


class Refused(ComponentError):
    """Nothing of the batch was taken. `after`: seconds until it is worth trying again, None when unknown."""

    def __init__(self, reason: str, after: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.after = after


class Lost(ComponentError):
    """A component failed on the batch: `spans` of it are lost, which the ledger has; of the rest nothing is known."""

    def __init__(self, spans: int) -> None:
        super().__init__(f"a processor failed: {spans} spans are lost, podtrail's log says why; don't send them again")
        self.spans = spans


class DeliveryError(ComponentError):
    """The batch was not delivered, or a part of it was not.

    `rest`: what was not, where that is not all of it; the other side has taken everything else but `rejected` spans.
    """

    def __init__(self, reason: str, *, rest: Batch | None = None, rejected: int = 0) -> None:
        super().__init__(reason)
        self.rest = rest
        self.rejected = rejected


class Retryable(DeliveryError):
    """Not delivered, worth another try. `after`: seconds the other side asked to wait, None when it did not say.

    Only what is left (`rest`) is tried again.
    """

    def __init__(
        self, reason: str, after: float | None = None, *, rest: Batch | None = None, rejected: int = 0
    ) -> None:
        super().__init__(reason, rest=rest, rejected=rejected)
        self.after = after


class Permanent(DeliveryError):
    """Not delivered and never will be."""


class ReadAgain(Permanent):
    """Not delivered in the transaction that it belongs to, which is aborted: its receiver reads it again."""
