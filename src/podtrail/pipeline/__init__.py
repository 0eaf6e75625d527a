"""Pipelines: a checked configuration, its components wired, and what drives batches through them to the exporters."""
