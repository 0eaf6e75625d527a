"""Which Pods come of what a client wrote, and how far each is, by watch, until it is ready or has ended."""

from .follower import PodFollower
from .progress import PodProgress

__all__ = ["PodFollower", "PodProgress"]
