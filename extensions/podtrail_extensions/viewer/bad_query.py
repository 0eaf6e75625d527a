"""What can't be answered as it was asked."""

from collections.abc import Mapping


class BadQuery(ValueError):
    """A query that can't be answered; the text says why."""

    status = 400


class NothingHeld(BadQuery):
    """What is asked for may be, but is not held."""

    status = 404


def passed_over(query: Mapping[str, str], what: str) -> int:
    """Return how many of a list's `what` a query passes over.

    Raises:
        BadQuery: That is no number.
    """
    after = query.get("after", "0")
    if not (after.isascii() and after.isdecimal() and len(after) < 9):
        raise BadQuery(f"after is the number of {what} to pass over.")
    return int(after)
