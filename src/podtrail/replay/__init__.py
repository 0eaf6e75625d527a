"""Recordings driven through the processors of a configuration in virtual time, as `podtrail replay` and tests do."""
