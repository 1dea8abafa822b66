"""Engines compute the blocks of a sweep, in threads or on a cluster, with the same numbers."""
