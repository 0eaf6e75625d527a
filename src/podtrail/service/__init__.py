"""A running podtrail: lifecycle, signals, reload, own metrics and logs."""

from podtrail.service.service import SHUTDOWN_SECONDS, Service, ServiceEnd

__all__ = ["SHUTDOWN_SECONDS", "Service", "ServiceEnd"]
