"""Seeded topics as options of ``countveil fit topics``: a table or a JSON file of their words."""

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from countveil.cli.options import MODEL
from countveil.cli.say import say
from countveil.privacy._text import plain

if TYPE_CHECKING:
    from countveil.fit import TopicModel

COLUMNS = "topic", "word"
USUAL_WEIGHT = 5.0


class Seeding(NamedTuple):
    """Options about seeded topics."""

    seeds: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=MODEL,
            help="Seed words of the first topics: a table (CSV) with the columns topic and word, or JSON such as "
            '{"economy": ["tax", "jobs"]}.',
        ),
    ] = None
    seed_weight: Annotated[
        float,
        typer.Option(
            rich_help_panel=MODEL, help="Amount added to the gamma shape of a seed word in its topic."
        ),
    ] = USUAL_WEIGHT

    def read(self) -> dict[str, list[str]] | None:
        """The words by topic, if there is a file; raises ValueError, which names it."""
        if self.seeds is None:
            return None
        try:
            text = self.seeds.read_text(encoding="utf-8-sig")
            return from_json(text) if self.seeds.suffix.lower() == ".json" else from_table(text)
        except (ValueError, RecursionError, csv.Error) as error:
            raise ValueError(f"{self.seeds} must hold seeds: {error}") from error


def from_json(text: str) -> dict[str, list[str]]:
    """An object of lists; what is in them is checked with the model's other parameters."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(
            f'must be an object such as {{"economy": ["tax", "jobs"]}}, got {text.strip()!r:.60}'
        )
    return found


def from_table(text: str) -> dict[str, list[str]]:
    """A table of one word a line, with its topic; topics come in the order in which they first do."""
    rows = csv.DictReader(text.splitlines())
    if not set(COLUMNS) <= set(rows.fieldnames or ()):
        raise ValueError(f"must have the columns {' and '.join(COLUMNS)}, got {rows.fieldnames or 'none'}")
    found: dict[str, list[str]] = {}
    for row in rows:
        topic, word = ((row[name] or "").strip() for name in COLUMNS)
        if not topic or not word:
            raise ValueError(f"must have a topic and a word in every line, got line {rows.line_num} without")
        found.setdefault(topic, []).append(word)
    return found


def say_left_out(model: "TopicModel") -> None:
    """Name the seeds that the data do not have."""
    for topic, wanted in (model.seeds or {}).items():
        absent = [word for word in wanted if word not in (model.seeds_ or {})[topic]]
        if absent:
            words = plain(", ".join(absent))
            say(f"Left out of the seeds of {plain(topic)}, since the data do not have them: {words}.")
