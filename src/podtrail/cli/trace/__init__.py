"""`podtrail trace -- COMMAND`: a client's requests to the API server as one trace, and the Pods that come of them."""

from podtrail.cli.trace.command import command

__all__ = ["command"]
