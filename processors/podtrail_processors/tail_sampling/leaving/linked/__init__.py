"""`linked_traces`: when one trace of a group of linked ones is kept, so are the others, within bounds."""
