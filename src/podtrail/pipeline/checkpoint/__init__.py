"""The whole state of a chain of processors as bytes and back: held spans, memories, numbers, chance."""

from podtrail.pipeline.checkpoint.checkpointer import Checkpointer
from podtrail.pipeline.checkpoint.errors import CheckpointError

__all__ = ["CheckpointError", "Checkpointer"]
