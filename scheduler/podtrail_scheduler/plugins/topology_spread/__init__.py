"""PodTopologySpread: how evenly Pods lie over the domains of a node label, as each Pod or the profile asks."""

from .plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]
