"""Commands run in this process, as a shell would run them."""

import numpy as np
from typer.testing import CliRunner

from countveil.cli.app import app

SHORT = ["--topics", "2", "--draws", "8", "--tune", "4", "--chains", "2", "--seed", "1", "--threads", "1"]
ASKED = ["--title", "Mail", "--purpose", "To find topics.", "--contact", "me@example.org", "--level", "10:1"]

RNG = np.random.default_rng(11)
WORDS = [f"word{v}" for v in range(8)]
COUNTS = RNG.poisson(RNG.gamma(0.5, 4.0, (20, 2)) @ RNG.dirichlet(np.full(8, 0.3), 2))


def run(*arguments, status=0, app=app):
    found = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert found.exit_code == status, found.output
    assert not isinstance(found.exception, Exception)
    return found


def fails(*arguments, status=1, app=app):
    """The one line on stderr of a command that must fail."""
    found = run(*arguments, status=status, app=app)
    lines = found.stderr.strip().splitlines()
    assert len(lines) == 1, found.stderr
    assert lines[0].startswith("error: ")
    assert found.stdout == ""
    return lines[0]


def write_counts(folder):
    """counts.csv, with a name for each row and column."""
    rows = [f"doc{d}," + ",".join(str(count) for count in row) for d, row in enumerate(COUNTS)]
    (folder / "counts.csv").write_text("\n".join(["," + ",".join(WORDS), *rows]))


def privatized(*more, status=0):
    """r.npz from counts.csv."""
    return run("privatize", "counts.csv", "-o", "r.npz", "--epsilon", "1", "--precision", "2", *more, status=status)
