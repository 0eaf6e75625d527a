"""The Scheduling Framework's types: what plugins are given (nodes, cycle state, handle, events), what they answer.

Plugins, ours and those of others, need no more than this room and `objects`.
"""
