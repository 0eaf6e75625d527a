"""Durable pipelines: what arrives is on disk before it is acknowledged, and recovery is replay.

All durable pipelines of a store share one log of arrivals. A batch is written before it goes into the chains, with the
time that they are told; what exporters are done with is noted. After a crash the same arrivals drive the same chains
through the same steps, and what left then and is noted does not leave again.
"""
