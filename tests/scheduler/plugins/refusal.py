"""What plugins answer, for tests that expect a refusal."""

from podtrail_scheduler.framework.status import Status


def refusal(answer: Status | None) -> Status:
    """The answer, which is one."""
    assert answer is not None
    return answer
