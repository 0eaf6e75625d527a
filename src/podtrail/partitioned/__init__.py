"""Pipelines of a source in partitions: processors of its own for each, driven in its time, taken up where another left.

A partition is a recording that has not ended. What is committed for it, with a checkpoint of its processors, is all
that its next owner needs: that restores the checkpoint and reads on from there, and what was delivered before does not
leave again.
"""
