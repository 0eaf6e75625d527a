"""kube-scheduler's metrics, with its names, labels, buckets and help texts, in a registry of their own."""
