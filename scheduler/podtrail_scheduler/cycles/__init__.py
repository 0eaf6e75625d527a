"""The scheduler itself: scheduling cycle and binding cycle of each attempt, and what it knows of the cluster."""
