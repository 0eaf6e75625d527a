"""A cluster in memory and in virtual time: API server, nodes, Pods that come, run and go.

Everything happens in one thread in the order of virtual time, so a run follows from its workload alone.
"""
