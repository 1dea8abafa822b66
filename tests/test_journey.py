"""Twenty people, an analyst, and shell commands between them: from a study file to topics."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import countveil as cv
from countveil.privacy import study
from tests.commands import SHORT, run

pytestmark = pytest.mark.long

SOURCE = Path(__file__).parents[1] / "src"
WORDS = ["surprise", "party", "cake", "budget", "meeting", "report"]
TOPICS = np.array([[5, 5, 3, 0, 0, 0.2], [0.2, 0, 0, 5, 4, 3]])
PEOPLE = 20


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "word.txt").write_text("\n".join(WORDS))
    (tmp_path / "inbox").mkdir()
    return tmp_path


def take_part(folder, number, counts):
    """One person on a device without NumPy, in a process of their own, with a ledger of their own."""
    home = folder / f"person{number}"
    home.mkdir()
    text = " ".join(f"{word.title()}, unheard-of," * count for word, count in zip(WORDS, counts, strict=True))
    (home / "mail.txt").write_text(text)
    environment = {"PYTHONPATH": str(SOURCE), "HOME": str(home), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-S", "-s", "-m", "countveil.privacy", "report", "../study.json", "mail.txt"]
    level = str(1 + number % 2)
    done = subprocess.run(
        [*command, "-o", f"../inbox/{number:02}.json", "--level", level, "--yes"],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (home / ".countveil" / "ledger.sqlite3").is_file()


def test_from_a_study_to_topics(here):
    asked = ["--title", "Mail", "--purpose", "Topics.", "--contact", "me@example.org"]
    run("study", "new", "word.txt", "-o", "study.json", *asked, "--level", "1:4", "--level", "1:5")
    rng = np.random.default_rng(4)
    counts = rng.poisson(TOPICS[np.arange(PEOPLE) % 2])
    for number, row in enumerate(counts):
        take_part(here, number, row)
    (here / "inbox" / "copy.json").write_bytes((here / "inbox" / "03.json").read_bytes())
    said = run("collect", "study.json", "inbox", "-o", "release.npz").stdout
    assert "Accepted 20 of 21 reports." in said
    assert "Refused for participant: 1" in said

    release = cv.Release.load("release.npz")
    asked_for = study.load("study.json")
    assert release.schema_hash == asked_for.schema_hash
    tokens = [json.loads((here / "inbox" / f"{n:02}.json").read_text())["participant"] for n in range(PEOPLE)]
    order = np.argsort(tokens)
    assert release.levels == tuple(asked_for.levels[number % 2] for number in order)
    exact = (release.reports.toarray() == counts[order]).mean()
    assert exact > 0.8  # noise is zero with a probability of 0.96 and 0.99: not by chance, in 10^12 runs

    run("fit", "topics", "release.npz", "-o", "fit.nc", *SHORT)
    fit = cv.TopicModel.load("fit.nc")
    top = {frozenset(rows["word"]) for _, rows in fit.top_words(3).groupby("topic")}
    assert top == {frozenset(WORDS[:3]), frozenset(WORDS[3:])}
