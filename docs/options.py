"""A directive that lists the options of all models, as the models declare them."""

from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

from countveil.common.parameters import described_options
from countveil.fit.parameters import Options as OfModels


def options() -> list[str]:
    """A line of a list for each option."""
    return [f"- `{option}` {line}" for option, line in described_options(OfModels).items()]


class Options(Directive):
    """The list, in place of the directive."""

    def run(self) -> list[nodes.Node]:
        """Parse the lines as the page is parsed."""
        found = nodes.container()
        self.state.nested_parse(StringList(options(), source=""), self.content_offset, found)
        return found.children


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("options-of-models", Options)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
