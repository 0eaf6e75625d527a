"""The command `podtrail-scheduler`."""
