"""A Pod's life as one trace, `PodLifecycle`: its parts stand for spans of all components and link to them.

Ids are a function of the Pod's uid and the part, so that a restart, a second podtrail or another order of arrival tells
the same trace.
"""
