"""DynamicResources: devices for the claims of Pods, allocated with the node in mind (structured parameters).

Not there: extended resources that only a device class stands for, claims of Pod groups, and what is Alpha in Kubernetes
1.37.
"""

from .plugin import DynamicResources

__all__ = ["DynamicResources"]
