"""What goes wrong with checkpoints."""


class CheckpointError(Exception):
    """A checkpoint can't be taken or restored; the text says why."""
