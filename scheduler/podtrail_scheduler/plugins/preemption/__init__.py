"""DefaultPreemption: makes room for a Pod by having Pods of lower priority terminate.

On each node where that may help, all Pods of lower priority are taken away, and if then the Pod fits, as many as
possible are given back, the most important first (`dry_run`). The node whose victims matter least (`victims`) is
nominated, and its victims are deleted in the background (`execution`) while the Pod waits outside the queue.
"""

from .plugin import DefaultPreemption

__all__ = ["DefaultPreemption"]
