"""`kubectl podtrail`: the commands that ask a running podtrail, asked of the one in the cluster."""
