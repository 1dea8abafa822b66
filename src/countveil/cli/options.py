"""Options that several commands share, alone or in groups: fields of a named tuple."""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from countveil.privacy import PrivacyLevel
from countveil.privacy.level import Level

MODEL, SAMPLER, FILES = "The model", "The sampler", "Files and output"
"""Panels of help for options that most fits leave alone."""
LEVEL = "The level of privacy"
"""The panel of help for it."""

# The words of the methods' records, which take too long to import for help to wait for them.
METHODS = (
    'How to fit: "gibbs" samples from the exact posterior. "augmented-gibbs" does the same with the auxiliary noise '
    'variables of Schein et al. (2019), more slowly. "cavi" approximates the posterior by independent gammas: fast, '
    'and accurate for dense counts. "bessel-cavi" is the variational method of Schofield et al. (2019). "svi" fits '
    'such an approximation to batches of rows, for very large data (topics and tensors). "em" finds one point '
    "estimate: fast, and without uncertainty."
)

MethodName = Annotated[str, typer.Option(help=METHODS, rich_help_panel=SAMPLER)]
LikelihoodName = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=MODEL,
        help='"poisson", or "negative-binomial" for overdispersed counts [default: negative-binomial with method '
        "gibbs, poisson with the others].",
    ),
]
Dispersion = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=MODEL,
        help='Dispersion p: one for all cells ("global"), one for each "column" or "row", or a known value such as 0.6 '
        "[default: column for topics, directed networks and tensors with gibbs, otherwise global].",
    ),
]
PriorShape = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=MODEL,
        help='Gamma shape of the factors, a number such as 0.1, or "learned" [default: learned by methods that sample, '
        "otherwise 0.1].",
    ),
]
Weights = Annotated[
    str,
    typer.Option(
        rich_help_panel=SAMPLER,
        help='Weights of the chains: "equal", or "stacked" for the weights that best predict held-out reports.',
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(min=0, help="Seed of the random numbers: the same seed gives the same result [default: random]."),
]
Undirected = Annotated[bool, typer.Option("--undirected", help="Each pair has one count, above the diagonal.")]
SelfLoops = Annotated[bool, typer.Option("--self-loops", help="Use the diagonal: counts of actors with themselves.")]
Shape = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=MODEL,
        help="Lengths of the axes, rows first, separated by commas [default: from the column names, as count_table "
        "writes them].",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1,
        rich_help_panel=SAMPLER,
        help="Number of threads; the result does not depend on it [default: all cores, or one for small data].",
    ),
]
Members = Annotated[
    int,
    typer.Option(
        "--members", "--words", "--actors", "--entries", min=1,
        help="Number of words (actors, entries) to list for each topic (community, component).",
    ),
]  # fmt: skip
Epsilon = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=LEVEL,
        help="Two-sided geometric noise: its privacy loss in nats for a total change of N, a positive decimal.",
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=LEVEL, help="N: the total change in counts that --epsilon covers, a positive decimal."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the output file if it exists.")]


def read_level(text: str) -> PrivacyLevel:
    """A level from N:EPSILON."""
    precision, separator, epsilon = text.partition(":")
    if not separator or precision == "rho":
        raise ValueError(f"level must be N:EPSILON, such as 10:1, got {text!r}")
    return PrivacyLevel(epsilon, precision)


def read_any_level(text: str) -> Level:
    """A level from N:EPSILON or rho:RHO."""
    if text.startswith("rho:"):
        return PrivacyLevel.zcdp(text.removeprefix("rho:"))
    if ":" not in text:
        raise ValueError(f"level must be N:EPSILON, such as 10:1, or rho:RHO, such as rho:0.125, got {text!r}")
    return read_level(text)


def number_or_word(text: str | None) -> str | float | None:
    """A dispersion or a shape as the models take it: a number where the text is one."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def number_or_auto(name: str, text: str, least: int = 1) -> int | str:
    """A whole number from ``least`` on, or "auto"; raises BadParameter, which names the option, as Typer does."""
    if text == "auto":
        return text
    if not (text.isascii() and text.isdigit() and int(text) >= least):
        rule = f"{name} must be a whole number of at least {least}, or auto, got {text!r}"
        raise typer.BadParameter(rule, param_hint=f"'--{name}'")
    return int(text)


def sizes_or_auto(name: str, text: str) -> int | str | list[int]:
    """As ``number_or_auto``, or several numbers separated by commas, of layers."""
    if "," not in text:
        return number_or_auto(name, text)
    return whole_numbers(name, text)


def whole_numbers(name: str, text: str) -> list[int]:
    """Whole numbers separated by commas; raises ValueError, which names the option."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{name} must be whole numbers separated by commas, got {text!r}") from None


def with_option_groups(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with every named tuple among its parameters replaced by that tuple's fields.

    Typer reads the options of a command from its signature. A parameter such as ``sampling: Sampling`` becomes one
    option for each field of ``Sampling``, in its place, with the field's type, help and default; the command is
    called with a ``Sampling`` of what was given.
    """
    groups: dict[str, Any] = {}
    options: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if hasattr(parameter.annotation, "_fields"):
            groups[parameter.name] = parameter.annotation
            options += inspect.signature(parameter.annotation).parameters.values()
        else:
            options.append(parameter)

    @functools.wraps(command)
    def wrapped(**given: Any) -> Any:
        for name, group in groups.items():
            given[name] = group(**{field: given.pop(field) for field in group._fields})
        return command(**given)

    keywords = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]
    wrapped.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    return wrapped
