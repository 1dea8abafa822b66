"""Who computes the blocks of a sweep. Whoever it is, the numbers are the same."""
