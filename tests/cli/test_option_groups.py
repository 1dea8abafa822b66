import inspect
from typing import Annotated, NamedTuple

import pytest
import typer
from typer.testing import CliRunner

from countveil.cli.option_groups import with_option_groups


class Size(NamedTuple):
    width: Annotated[int, typer.Option(min=1, help="How wide.")]
    height: Annotated[int, typer.Option("--tall", help="How tall.")] = 5


class Look(NamedTuple):
    colour: str = "blue"


@with_option_groups
def draw(name: str, *, size: Size, border: bool = False, look: Look) -> None:
    """Draw."""
    typer.echo(f"{name} {size} {border} {look}")


def run(*arguments):
    app = typer.Typer(rich_markup_mode=None)
    app.command()(draw)
    return CliRunner().invoke(app, list(arguments))


def test_the_fields_are_options_in_the_place_of_their_group():
    assert list(inspect.signature(draw).parameters) == ["name", "width", "height", "border", "colour"]
    said = run("--help").stdout
    options = ("--width", "How wide.", "--tall", "How tall.", "--border", "--colour")
    assert sorted(options, key=said.index) == list(options)
    assert "default: 5" in said


def test_the_command_is_given_the_groups():
    assert run("box", "--width", "3").stdout == f"box {Size(3)} False {Look()}\n"
    said = run("box", "--width", "3", "--tall", "2", "--border", "--colour", "red").stdout
    assert said == f"box {Size(3, 2)} True {Look('red')}\n"


@pytest.mark.parametrize(
    ("width", "message"), [([], "Missing option '--width'"), (["--width", "0"], "--width")]
)
def test_a_field_is_checked_as_any_option(width, message):
    found = run("box", *width)
    assert found.exit_code == 2
    assert message in found.stderr
