"""VolumeBinding: claims are bound with the node in mind, and Pods go where their volumes can be."""

from .plugin import VolumeBinding

__all__ = ["VolumeBinding"]
