import re

import pandas as pd
import pytest
from typer.testing import CliRunner

import countveil as cv
from countveil.cli.app import app
from countveil.experiments import corpora, demo
from countveil.experiments.demo import Plan
from countveil.planning.contenders import CONTENDERS, TRUE_COUNTS
from tests.experiments.conftest import TINY

pytestmark = pytest.mark.long


def test_the_command_writes_everything(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(corpora, "load_reuters", lambda: corpus)
    monkeypatch.setattr(demo, "QUICK", Plan(noise_draws=1, sampling=TINY))
    output = tmp_path / "new" / "demo"
    arguments = ["demo", "--quick", "--topics", "3", "--threads", "1", "-o", str(output)]
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 0, found.output
    assert "countveil ahead of naive on log score at every level" in found.stdout
    assert "3 topics" in found.stdout
    assert "Topics at epsilon/N = 2 to be printed: shares of words in %, 90% intervals" in found.stdout
    assert re.search(r"\w+ \d+\.\d \(\d+\.\d to \d+\.\d\)", found.stdout)
    assert re.search("Safe to report|Not safe yet|not checked", found.stdout)
    assert "[26/26]" not in found.stdout  # progress goes to stderr
    assert "countveil, epsilon/N = 3, noise draw 1" in found.stderr
    assert sorted(path.name for path in output.iterdir()) == [
        "fits.csv", "release.npz", "scores.csv", "scores.png",
    ]  # fmt: skip
    release = cv.Release.load(output / "release.npz")
    assert release.column_labels == tuple(corpus.words)
    assert release.row_labels == tuple(corpus.titles)
    assert float(release.epsilon / release.precision) == 1.0
    scores, fits = pd.read_csv(output / "scores.csv"), pd.read_csv(output / "fits.csv")
    assert set(scores["method"]) == {TRUE_COUNTS, *(contender.name for contender in CONTENDERS)}
    assert len(fits) == 2 + 3 * 4
    assert (output / "scores.png").read_bytes().startswith(b"\x89PNG")
