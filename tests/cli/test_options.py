import pytest
from typer.main import get_command

from countveil.cli.app import app
from countveil.cli.options import read_level, whole_numbers
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
    assert "levels of rho need it" in help_of("study", "new")["signed"]
    assert "as with --rho always" in help_of("privatize")["truncated"]
