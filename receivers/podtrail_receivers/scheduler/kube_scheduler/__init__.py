"""A stock kube-scheduler seen from beside it: its log, the API server's watches, its `/metrics`."""
