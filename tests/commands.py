"""Commands run in this process, as a shell would run them."""

from typer.testing import CliRunner

from countveil.cli.app import app

SHORT = ["--topics", "2", "--draws", "20", "--tune", "10", "--chains", "2", "--seed", "1", "--threads", "1"]


def run(*arguments, status=0):
    found = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert found.exit_code == status, found.output
    assert not isinstance(found.exception, Exception)
    return found


def fails(*arguments, status=1):
    """The one line on stderr of a command that must fail."""
    found = run(*arguments, status=status)
    lines = found.stderr.strip().splitlines()
    assert len(lines) == 1, found.stderr
    assert lines[0].startswith("error: ")
    assert found.stdout == ""
    return lines[0]
