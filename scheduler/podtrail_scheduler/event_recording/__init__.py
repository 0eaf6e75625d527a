"""Events of events.k8s.io/v1, recorded in the background and folded into series as client-go does it.

A repetition that finds everything the same, the resourceVersion of the object included, becomes part of a series. Only
the second of a series is written at once; the others are counted, and the count is written when six minutes have
passed without another, and every thirty while the series goes on.
"""
