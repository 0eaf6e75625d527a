"""Decisions remembered for late spans after their trace is gone: the decision cache and the compact memory."""
