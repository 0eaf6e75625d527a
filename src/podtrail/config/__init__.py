"""Configurations: YAML with places, references, shared value types, and reports of everything that is wrong."""

from podtrail.config.document import Document
from podtrail.config.printable import printable
from podtrail.config.problem import ConfigError, Position, Problem, Source

__all__ = ["ConfigError", "Document", "Position", "Problem", "Source", "printable"]
