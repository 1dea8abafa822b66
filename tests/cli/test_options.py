import inspect
from typing import Annotated, NamedTuple

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from countveil.cli.app import app
from countveil.cli.options import read_level, whole_numbers, with_option_groups
from countveil.privacy import PrivacyLevel


def test_a_level_is_read_as_exact_decimals():
    assert read_level("2.5:0.1") == PrivacyLevel("0.1", "2.5")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("10", "level must be N:EPSILON, such as 10:1, got '10'"),
        ("0:1", "precision must be positive, got 0"),
        ("1:", "epsilon must be a decimal number, got ''"),
    ],
)
def test_what_is_no_level_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        read_level(text)


def test_whole_numbers_are_read_from_a_list():
    assert whole_numbers("topics", "5,10, 20") == [5, 10, 20]
    with pytest.raises(ValueError, match="topics must be whole numbers separated by commas, got '5,ten'"):
        whole_numbers("topics", "5,ten")


def help_of(*names):
    """{option: its words} of a command."""
    command = get_command(app)
    for name in names:
        command = command.commands[name]
    return {each.name: getattr(each, "help", None) for each in command.params}


def test_help_says_that_levels_of_rho_keep_the_sign():
    assert "Levels of rho need them" in help_of("study", "new")["signed"]
    assert "--rho always keeps them" in help_of("privatize")["truncated"]


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


@pytest.mark.parametrize(("width", "message"), [([], "Missing option '--width'"), (["--width", "0"], "--width")])
def test_a_field_is_checked_as_any_option(width, message):
    found = run("box", *width)
    assert found.exit_code == 2
    assert message in found.stderr
