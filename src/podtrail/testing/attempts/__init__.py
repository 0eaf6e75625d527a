"""Traces of scheduling attempts, made up for tests: one by one, or as somebody plans them."""

from podtrail.testing.attempts.made import MS, START, MadeAttempt, No, no_room, nodes

__all__ = ["MS", "START", "MadeAttempt", "No", "no_room", "nodes"]
