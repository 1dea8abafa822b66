"""Readers of files from others, given files that were broken on purpose: ``python -m tests.fuzz --help``."""
