"""``countveil show``: what a fit says, once more."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from countveil.cli.fit import print_parts, print_rows, print_totals
from countveil.cli.fit_dynamic import print_seasons
from countveil.cli.options import Members
from countveil.cli.output import plain_errors, say
from countveil.cli.results import Result, fit_tables, top_documents, with_result
from countveil.privacy._text import plain

if TYPE_CHECKING:
    from countveil.fit.base import FactorizationEstimator

FitFile = Annotated[Path, typer.Argument(help="A fit written by `countveil fit` (.nc).")]


@plain_errors
@with_result
def show(
    fit: FitFile,
    members: Members = 8,
    word: Annotated[
        str | None, typer.Option("--word", help="Print the probability of this word in every topic instead.")
    ] = None,
    documents: Annotated[
        int, typer.Option("--documents", min=0, help="Number of documents to list for each topic (topic models only).")
    ] = 0,
) -> Result:
    """Print the results of a fit: topics, communities or components, totals, and whether they are safe to report.

    The same output as `countveil fit`, with the names given by `countveil relabel`.

    Example: `countveil show survey.nc --words 5 --documents 3`
    """
    found = loaded(fit)
    from countveil.fit import DynamicModel, TopicModel

    if word is not None or documents:
        if not isinstance(found, TopicModel):
            raise ValueError(
                f"--word and --documents must come with a fit of topics, got a fit of {type(found).__name__}"
            )
        if word is not None:
            print_word(found, word)
            judged = found.diagnostics()
            say(judged.line)
            return {"word": found.documents.find_word(word), "state": str(judged.state), "verdict": judged.verdict}
    say(f"{type(found).__name__}: {found._reader.data_in_words()}, method {found.posterior.attrs['method']}.")
    print_parts(found, members)
    if documents:
        print_documents(found, documents)
    print_rows(found)
    if isinstance(found, DynamicModel):
        print_seasons(found)
    print_totals(found)
    say(found.diagnostics().line)
    return fit_tables(found, members, documents)


def loaded(path: Path) -> "FactorizationEstimator":
    """A fit from its file, checked before the models are imported."""
    from countveil.common import fit_files

    fit_files.check(path)
    from countveil.fit import load

    return load(path)


def print_documents(found: Any, n: int) -> None:
    """The documents with the largest shares of each topic."""
    for topic, rows in top_documents(found, n).groupby("topic", sort=False):
        listed = ", ".join(f"{row.document} {shown(row, row.share)}" for row in rows.itertuples())
        say(f"Documents with most of topic {topic}: {plain(listed)}")


def print_word(found: Any, word: str) -> None:
    """The probability of a word in every topic."""
    for row in found.documents.find_word(word).itertuples():
        name = f" {row.name}" if hasattr(row, "name") and row.name else ""
        say(f"topic {row.topic}{name}: {shown(row, row.probability)}, rank {row.rank}")


def shown(row: Any, value: float) -> str:
    """A share in per cent, with the interval of its row if it has one."""
    ends = f" ({100 * row.lower:.1f} to {100 * row.upper:.1f})" if hasattr(row, "lower") else ""
    return f"{100 * value:.1f}%{ends}"
