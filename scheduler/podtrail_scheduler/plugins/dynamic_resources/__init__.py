"""DynamicResources: devices for the claims of Pods, allocated with the node in mind (structured parameters).

Not there: claims of Pod groups, and what is Alpha in Kubernetes 1.37.
"""

from .plugin import DynamicResources

__all__ = ["DynamicResources"]
