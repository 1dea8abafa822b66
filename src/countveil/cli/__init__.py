"""The command line: one command per file, put together in ``app``."""
