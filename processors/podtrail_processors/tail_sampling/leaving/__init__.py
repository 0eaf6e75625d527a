"""Everything that leaves the sampler: kept and dropped traces, late spans, verdicts, and decisions under stress."""
