"""Traces of operators made with kopf: a span a handler, linked to the change that it answers, carried to what it makes.

Needs kopf, which nothing else here does: `podtrail[operators]`.
"""

from .tracing import OperatorTracing

__all__ = ["OperatorTracing"]
