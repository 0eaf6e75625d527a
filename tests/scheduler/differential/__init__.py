"""Whether the scheduler decides as kube-scheduler does: generated cases, what kube-scheduler said, what ours says."""
