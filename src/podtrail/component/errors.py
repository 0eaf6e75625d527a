"""The exceptions that components raise on purpose, and what each means for the batch at hand.

ComponentError
├── StartError         cannot start: a port in use, a file that can't be opened
├── Refused            a batch was not taken, nothing of it was; the sender keeps it
├── Lost               a component failed on a batch, spans of it are lost; not to be offered again
└── DeliveryError      a batch was not delivered
    ├── Retryable      worth another try, not before `after` seconds
    └── Permanent      never deliverable
"""


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
    """The batch was not delivered."""


class Retryable(DeliveryError):
    """Not delivered, worth another try. `after`: seconds the other side asked to wait, None when it did not say."""

    def __init__(self, reason: str, after: float | None = None) -> None:
        super().__init__(reason)
        self.after = after


class Permanent(DeliveryError):
    """Not delivered and never will be."""
