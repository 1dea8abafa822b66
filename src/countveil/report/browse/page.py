"""The page from its parts: one file with one script, which alone its own policy lets run."""

import os
from pathlib import Path
from typing import Any

from countveil.common.parameters import check_integer
from countveil.fit.base import FactorizationEstimator
from countveil.privacy._archive import replacing
from countveil.privacy._text import plain
from countveil.report.browse.gathered import CHOICES, HIDDEN, gathered
from countveil.study.page.write import assembled

SCRIPTS = "parts.js", "views.js", "app.js"


def write_browser(
    fit: FactorizationEstimator,
    path: str | os.PathLike[str],
    other: FactorizationEstimator | None = None,
    *,
    members: int = 20,
    rows: str = HIDDEN,
    title: str | None = None,
    names: tuple[str, str] = ("this fit", "the other fit"),
) -> None:
    """Write one page on which a fit is browsed to an HTML file that needs no network; atomically.

    Args:
        fit: any fitted model whose components can be listed.
        path: the file.
        other: a second fit of the same kind, to be compared with the first.
        members: how many words (actors, entries) to list of each topic (community, component).
        rows: what the page says of single documents (rows): "hidden" for nothing, "numbers" for what each is made of
            under its number, "labels" under its name. Rows are often people, so nothing is the default.
        title: heading of the page.
        names: what the page calls the two fits.

    Raises:
        ValueError: a fit without components that can be listed; fits that cannot be compared; members below one; an
            unknown choice of rows.
        NotFittedError: before ``fit``.
    """
    page = render(fit, other, members=members, rows=rows, title=title, names=names)
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def render(
    fit: FactorizationEstimator,
    other: FactorizationEstimator | None = None,
    *,
    members: int = 20,
    rows: str = HIDDEN,
    title: str | None = None,
    names: tuple[str, str] = ("this fit", "the other fit"),
) -> str:
    """The page as text; the same for the same fits. Arguments and errors as ``write_browser``."""
    check_integer("members", members, 1)
    if rows not in CHOICES:
        raise ValueError(f"rows must be one of {', '.join(CHOICES)}, got {rows!r}")
    fits = [fit] if other is None else [fit, other]
    data = gathered(fits, list(names)[: len(fits)], members, rows)
    return page_of(data, title or title_of(data))


def title_of(data: dict[str, Any]) -> str:
    """The page's heading where none is given."""
    many = " and ".join(kind["many"] for kind in data["fits"][0]["kinds"])
    both = ", two fits" if len(data["fits"]) > 1 else ""
    return f"{many[0].upper()}{many[1:]}{both}"


def page_of(data: dict[str, Any], title: str) -> str:
    """The page of what was gathered."""
    return assembled(Path(__file__).with_name("browse.html"), SCRIPTS, data, {"title": plain(title)})
