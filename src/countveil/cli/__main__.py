"""``python -m countveil.cli``: the command line where its script is not on the path."""

from countveil.cli.app import app

app()
