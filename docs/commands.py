"""The page of the command line: a section per command with its help and options, as typer has them."""

import re
from collections.abc import Iterator
from typing import Any

import typer

from countveil.cli.app import app


def leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its whole name."""
    if hasattr(command, "commands"):
        for part, each in command.commands.items():
            yield from leaves(each, f"{name} {part}")
        if not command.invoke_without_command:
            return
    yield name, command


def described(parameter: Any, context: Any) -> str:
    """A line of a list: names, help and default of an argument or an option."""
    if parameter.param_type_name == "option":
        names = ", ".join(f"`{each}`" for each in (*parameter.opts, *parameter.secondary_opts))
    else:
        names = f"`{parameter.name}`"
    record = parameter.get_help_record(context)
    words = " ".join((record[1] if record else "").split())
    return f"- {names}: {marked(words)}"


def marked(words: str) -> str:
    """A text with its options as code: two dashes would become one."""
    parts = re.split(r"(`[^`]*`)", words)  # every second one is code
    parts[::2] = [re.sub(r"(?<![a-z-])--[a-z][a-z-]*", r"`\g<0>`", each) for each in parts[::2]]
    return "".join(parts)


def as_markdown() -> str:
    """All commands: a heading each, the help, and a list of arguments and options."""
    sections = []
    for name, command in sorted(leaves(typer.main.get_command(app), "countveil")):
        context = command.make_context(name, [], resilient_parsing=True)
        lines = [
            described(each, context)
            for each in command.params
            if not getattr(each, "hidden", False) and "--help" not in each.opts
        ]
        sections.append("\n\n".join([f"## {name}", marked((command.help or "").strip()), "\n".join(lines)]))
    return "\n\n".join(sections) + "\n"


def append(app: Any, name: str, source: list[str]) -> None:
    """Append the commands to their page when it is read."""
    if name == "commands":
        source[0] += "\n" + as_markdown()


def setup(app: Any) -> dict[str, bool]:
    """Connect it."""
    app.connect("source-read", append)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
