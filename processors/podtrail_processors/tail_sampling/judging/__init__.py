"""Asking the policies about a trace: their votes, what becomes of it, why, and what shadows would have said."""
