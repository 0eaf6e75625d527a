"""The state of a chain of processors as bytes and back, each processor's as it saves it."""

from podtrail.pipeline.checkpoint.checkpointer import ChainState, Checkpointer
from podtrail.pipeline.checkpoint.errors import CheckpointError

__all__ = ["ChainState", "CheckpointError", "Checkpointer"]
