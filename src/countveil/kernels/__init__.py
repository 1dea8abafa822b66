"""Compiled loops and nothing else: scalar laws, and sweeps over one block of rows."""
