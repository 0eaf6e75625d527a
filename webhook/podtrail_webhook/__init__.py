"""`podtrail webhook`: an admission webhook that writes a request's trace context into Pods and templates of Pods."""
