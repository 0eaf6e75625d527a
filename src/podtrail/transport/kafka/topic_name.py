"""Names that Kafka lets a topic have."""

import re

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def is_topic(name: str) -> bool:
    """Say whether Kafka lets a topic have that name: `.` and `..` it does not."""
    return _NAME.fullmatch(name) is not None and name not in (".", "..")


def checked_topic(name: str) -> str:
    """Return the name of a topic.

    Raises:
        ValueError: Kafka lets none have it.
    """
    if not is_topic(name):
        raise ValueError(
            f"{name!r} is no name of a topic: up to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-', and neither "
            "'.' nor '..'"
        )
    return name
