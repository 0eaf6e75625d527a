"""What a host that runs the scheduler in its own process needs to take the spans from it, none lost."""
