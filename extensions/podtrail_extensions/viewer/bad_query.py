"""What can't be answered as it was asked."""


class BadQuery(ValueError):
    """A query that can't be answered; the text says why."""

    status = 400


class NothingHeld(BadQuery):
    """What is asked for may be, but is not held."""

    status = 404
