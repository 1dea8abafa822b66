"""Options that several commands share."""

from typing import Annotated

import typer

from countveil.privacy import PrivacyLevel
from countveil.privacy.any_level import Level

# What the records of methods say, in their words: the records take long to import, and help must not wait for them.
METHODS = (
    'How to fit: "gibbs" samples the posterior, exactly as the draws grow. "augmented-gibbs" samples it as '
    'published, with auxiliary variables for the noise: slower. "cavi" approximates it by independent gammas: '
    'fast, and good where counts are dense. "bessel-cavi" approximates it as published, with a point mass for the '
    'Bessel variable. "svi" learns an approximation from batches of rows, for very large data (topics and '
    'tensors). "em" finds one point estimate, fast and steady, and says nothing about uncertainty.'
)

MethodName = Annotated[str, typer.Option(help=METHODS)]
LikelihoodName = Annotated[
    str | None,
    typer.Option(
        help='"poisson", or "negative-binomial" for counts that come in bursts '
        "[default: the latter with method gibbs, the former with others]."
    ),
]
Dispersion = Annotated[
    str | None,
    typer.Option(
        help='What has a burstiness of its own in "negative-binomial": "global", "column" or "row"; or a known p, '
        "such as 0.6 [default: column for topics and directed networks with gibbs, else global]."
    ),
]
PriorShape = Annotated[
    str | None,
    typer.Option(
        help='Gamma shape of the factors, a number such as 0.1, or "learned" [default: learned by methods that sample, '
        "else 0.1]."
    ),
]
Weights = Annotated[
    str,
    typer.Option(
        help='How much each chain counts: "equal", or "stacked" by how well the chains together predict reports that '
        "they leave out."
    ),
]
Seed = Annotated[int | None, typer.Option(min=0, help="For the same draws again [default: a new one].")]
Undirected = Annotated[
    bool, typer.Option("--undirected", help="Each pair was reported once, above the diagonal.")
]
SelfLoops = Annotated[
    bool, typer.Option("--self-loops", help="Counts of actors with themselves are data too.")
]
Shape = Annotated[
    str | None,
    typer.Option(
        help="Lengths of the axes, rows first, separated by commas [default: read from the columns' names, as "
        "count_table writes them]."
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Threads to use [default: all, or one if data are small]; any number gives the same result.",
    ),
]
Members = Annotated[
    int,
    typer.Option(
        "--members", "--words", "--actors", "--entries", min=1,
        help="Words (actors, entries) to list of each topic (community, component).",
    ),
]  # fmt: skip
Force = Annotated[bool, typer.Option("--force", help="Replace the output file if it exists.")]


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
        raise ValueError(
            f"level must be N:EPSILON, such as 10:1, or rho:RHO, such as rho:0.125, got {text!r}"
        )
    return read_level(text)


def number_or_word(text: str | None) -> str | float | None:
    """A dispersion or a shape as the models take it: a number where the text is one."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def number_or_auto(name: str, text: str) -> int | str:
    """A whole number from 1 on, or "auto"; raises BadParameter, which names the option: a misuse, as Typer's own."""
    if text == "auto":
        return text
    if not (text.isascii() and text.isdigit() and int(text) >= 1):
        rule = f"{name} must be a whole number of at least 1, or auto, got {text!r}"
        raise typer.BadParameter(rule, param_hint=f"'--{name}'")
    return int(text)


def whole_numbers(name: str, text: str) -> list[int]:
    """Whole numbers separated by commas; raises ValueError, which names the option."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{name} must be whole numbers separated by commas, got {text!r}") from None
