"""What to do where somebody else listens at an address."""

from podtrail.transport.listen import in_use


def taken(error: BaseException) -> str:
    """Return the address that somebody else listens at, which ended the start; "" where it is another error."""
    cause = in_use(error)
    return "" if cause is None else cause.endpoint


def free(endpoint: str) -> str:
    """Return the address of a port there that the system chooses."""
    return endpoint.rpartition(":")[0] + ":0"
