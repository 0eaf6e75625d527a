"""A real Kubernetes cluster: connection, watching, leader election, and the scheduler that runs on them.

Needs the extra `podtrail[kubernetes]`; nothing of it is imported before a connection is opened.
"""
