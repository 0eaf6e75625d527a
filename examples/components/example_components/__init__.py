"""Components of another distribution: what docs/components/ explains."""
