"""DynamicResources: devices for the claims of Pods, allocated with the node in mind (structured parameters).

Not there: devices that several claims share (consumable capacity), devices with binding conditions (never chosen),
claims of Pod groups, extended resources backed by device classes.
"""

from .plugin import DynamicResources

__all__ = ["DynamicResources"]
