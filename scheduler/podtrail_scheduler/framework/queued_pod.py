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
    """Since when it could be popped: when it last entered the active queue, or the back-off queue to leave it there."""
    initial_attempt: int | None = None
    """When it first entered the active queue, where `scheduler_pod_scheduling_sli_duration_seconds` begins."""
    attempts: int = 0
    """How many attempts began, the one under way included."""
    unschedulable_count: int = 0
    """How many attempts ended with a refusal."""
    errors: int = 0
    """How many of the last attempts in a row failed with an error."""
    refused_by: frozenset[str] = field(default=frozenset())
    """The plugins that refused it in the last attempt or kept it gated since."""
    pending_on: frozenset[str] = field(default=frozenset())
    """The plugins that answered Pending."""
    message: str = ""
    """Why the last attempt failed, or what keeps it gated."""
    gating_plugin: str = ""
    """The PreEnqueue plugin that keeps it gated, empty when none does."""
    backoff_expiration: int | None = None
    """When its back-off is over, None when that is yet to be found."""
    flushed: bool = False
    """Whether it left the unschedulable pool last because it had been there for too long."""
    flushed_at: int = 0
    last_pre_enqueue_rejection: str | None = None
    """The message of the last PreEnqueue rejection (KEP-5501), empty when it passed since, None when never asked."""

    @property
    def gated(self) -> bool:
        """Whether a PreEnqueue plugin holds it back."""
        return bool(self.gating_plugin)

    @property
    def rejectors(self) -> frozenset[str]:
        """All plugins whose hints matter to it."""
        return self.refused_by | self.pending_on if self.pending_on else self.refused_by
