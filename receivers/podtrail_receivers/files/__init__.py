"""Following files that others write: which are meant, and what they gain."""
