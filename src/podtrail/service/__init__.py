"""A running podtrail: lifecycle, signals, reload, own metrics and logs."""

from podtrail.service.service import SHUTDOWN_SECONDS, Ended, Service

__all__ = ["SHUTDOWN_SECONDS", "Ended", "Service"]
