"""What a notebook shows of an object: a small table of facts, every text escaped."""

from collections.abc import Sequence
from html import escape


def card(title: str, rows: Sequence[tuple[str, str]], note: str = "") -> str:
    """HTML of a heading, a table of names and values, and a note below, with hardly any style."""
    body = "".join(
        f'<tr><th scope="row" style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in rows
    )
    below = f'<p style="max-width:46em">{escape(note)}</p>' if note else ""
    return f"<div><strong>{escape(title)}</strong><table><tbody>{body}</tbody></table>{below}</div>"
