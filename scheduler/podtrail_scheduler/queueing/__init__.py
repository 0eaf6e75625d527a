"""The scheduling queue: which Pod is next, and when a refused one is worth another try."""
