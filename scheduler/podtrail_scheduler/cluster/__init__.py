"""Clusters that the scheduler can work on."""
