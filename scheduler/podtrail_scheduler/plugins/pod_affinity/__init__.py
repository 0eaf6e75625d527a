"""InterPodAffinity: Pods near other Pods or away from them, as required and as preferred, in both directions."""

from .plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
