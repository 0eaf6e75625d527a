"""What a user can set of `tail_sampling`: the sampler's keys, linked traces, stress relief."""
