"""Values that conditions compute with: what they are, how they compare and add up, and what goes wrong."""
