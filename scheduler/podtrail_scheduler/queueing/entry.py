"""A Pod in the queue and what the queue knows about it."""

from dataclasses import dataclass, field

from podtrail_scheduler.objects import Pod


@dataclass(slots=True, eq=False)
class QueuedPod:
    """One Pod from its arrival until it is bound or gone; times in unix nanoseconds."""

    pod: Pod
    queued_at: int
    """When it entered the queue or came back from an attempt: back-off counts from here."""
    active_since: int = 0
    """When it last entered the active queue."""
    attempts: int = 0
    """How many attempts began, the one under way included."""
    errors: int = 0
    """How many of the last attempts in a row failed with an error."""
    refused_by: frozenset[str] = field(default=frozenset())
    """The plugins that refused it in the last attempt or keep it gated."""
    pending_on: frozenset[str] = field(default=frozenset())
    """Those of them that answered Pending."""
    message: str = ""
    """Why the last attempt failed, or what keeps it gated."""
    gated: bool = False
