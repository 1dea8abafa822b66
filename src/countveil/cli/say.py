"""What commands say: plain text, whatever the labels and names in it hold."""

import typer

from countveil.privacy._text import plain


def say(text: str, err: bool = False) -> None:
    """Print lines; control characters that a file brought are written out, never sent to the terminal."""
    typer.echo(plain(text, lines=True), err=err)
