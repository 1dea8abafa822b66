"""The page of the command line: every command and option of the program is on it."""

import re
from importlib.util import module_from_spec, spec_from_file_location

import pytest
import typer

from countveil.cli.app import app
from tests.pages import DOCS

spec = spec_from_file_location("commands_page", DOCS / "commands.py")
PAGE = module_from_spec(spec)
spec.loader.exec_module(PAGE)
TEXT = PAGE.as_markdown()
PROGRAM = typer.main.get_command(app)


@pytest.mark.parametrize("name", sorted(PROGRAM.commands))
def test_every_command_has_a_section_with_its_options(name):
    command = PROGRAM.commands[name]
    parts = getattr(command, "commands", {})
    for whole, each in {f"{name} {part}": parts[part] for part in parts}.items() or [(name, command)]:
        section = TEXT.partition(f"## countveil {whole}\n")[2].partition("\n## ")[0]
        assert section, whole
        for parameter in each.params:
            for option in parameter.opts:
                shown = f"`{parameter.name if parameter.param_type_name == 'argument' else option}`"
                assert shown in section or "--help" in parameter.opts, (whole, option)


def test_options_in_help_are_code_so_that_their_dashes_stay():
    lines = [line for line in TEXT.splitlines() if line.startswith("- `")]
    assert len(lines) > 200
    assert " --" not in re.sub("`[^`]*`", "", TEXT)
