"""Text that others wrote, as a terminal and a spreadsheet may have it: the one place where it is made harmless."""

FORMULA = ("=", "+", "-", "@", "\N{FULLWIDTH EQUALS SIGN}", "\N{FULLWIDTH PLUS SIGN}",
           "\N{FULLWIDTH HYPHEN-MINUS}", "\N{FULLWIDTH COMMERCIAL AT}")  # fmt: skip
"""What a cell begins with that a spreadsheet computes."""
JOINERS = "\N{NO-BREAK SPACE}\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}\N{IDEOGRAPHIC SPACE}"
"""Characters that do not print and that words are written with."""


def plain(text: str, lines: bool = False) -> str:
    """Text without control characters: escape sequences, changes of direction and the like are written out.

    Line ends stay if ``lines``.
    """
    if text.isprintable():
        return text
    kept = JOINERS + "\n" if lines else JOINERS
    return "".join(each if each.isprintable() or each in kept else ascii(each)[1:-1] for each in text)


def cell(text: str) -> str:
    """Text as a cell that moves no cursor and that no spreadsheet takes for a formula."""
    shown = plain(text)
    risky = shown.lstrip().startswith(FORMULA) or text.startswith(("\t", "\r", "\n"))
    return f"'{shown}" if risky else shown
