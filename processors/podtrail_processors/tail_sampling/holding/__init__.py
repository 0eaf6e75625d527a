"""Traces in memory until they are due: which there are, when each is decided, and within what bounds."""
