"""How to install what the library does not need everywhere, for messages about it."""


def install(extra: str) -> str:
    """The command that installs an extra of pyproject.toml; there is no package index to install it from."""
    return f"pip install '.[{extra}]' in a clone of countveil"
