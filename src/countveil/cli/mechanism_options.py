"""The mechanism that options of a command state, or a file with one in each row."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import typer

from countveil.cli.options import Epsilon, Precision
from countveil.privacy import mechanisms as m
from countveil.privacy.exact import exact
from countveil.privacy.mechanisms import Mechanism

if TYPE_CHECKING:
    import pandas as pd


LEVEL = ("epsilon", "precision")
"""Instead of alpha."""
KINDS: Mapping[str, tuple[Callable[..., Mechanism], tuple[str, ...]]] = {
    "two-sided-geometric": (m.TwoSidedGeometric, ("alpha",)),
    "discrete-gaussian": (m.DiscreteGaussian, ("sigma",)),
    "gaussian": (m.Gaussian, ("sigma",)),
    "laplace": (m.Laplace, ("scale",)),
    "skellam": (m.Skellam, ("l1", "l2")),
    "random-rounding": (m.RandomRounding, ("base",)),
    "rounding": (m.Rounding, ("base",)),
    "rounding-half-even": (partial(m.Rounding, to="even"), ("base",)),
    "rounding-down": (partial(m.Rounding, to="down"), ("base",)),
    "rounding-up": (partial(m.Rounding, to="up"), ("base",)),
    "rounding-midpoint": (partial(m.Rounding, to="midpoint"), ("base",)),
    "suppression": (m.Suppression, ("below",)),
    "interval": (m.Interval, ("lower", "upper")),
    "top-coding": (m.TopCoding, ("above",)),
    "randomised-response": (m.RandomisedResponse, ("probability",)),
    "thresholded": (m.Thresholded, ("noise", "above")),
    "table": (m.Table, ("probabilities",)),
}
"""Names of mechanisms in commands, their classes, and the options that state their parameters."""
Number = str | None
THEN = " then "
"""Between rules that were applied one after another."""
MECHANISM = "The mechanism"
"""The panel of help for it and its parameters."""


def parameter(help: str, *names: str, **more: Any) -> Any:
    """An option that states a parameter of a mechanism."""
    return typer.Option(*names, help=help, rich_help_panel=MECHANISM, **more)


class MechanismOptions(NamedTuple):
    """The mechanism as options of a command: a field for each in ``KINDS`` and ``LEVEL``, None if not given."""

    mechanism: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=MECHANISM,
            help=f"What was done to the counts: {', '.join(KINDS)}. Or a publisher's rule: {', '.join(m.PRESETS)}. Or "
            'several rules in the order applied, each with its options: "suppression --below 8 then rounding '
            '--base 5".',
        ),
    ] = None
    alpha: Annotated[
        Number, parameter("Two-sided geometric noise: its alpha, exp(-epsilon/N). May be given without --mechanism.")
    ] = None
    epsilon: Epsilon = None
    precision: Precision = None
    sigma: Annotated[
        Number,
        parameter(
            "Gaussian noise: its standard deviation, or, with import --long, the column that has it.",
            metavar="NUMBER|COLUMN",
        ),
    ] = None
    scale: Annotated[Number, parameter("Laplace noise: its scale.")] = None
    l1: Annotated[Number, parameter("Skellam noise: rate of the Poisson count that was added.", "--l1")] = None
    l2: Annotated[Number, parameter("Skellam noise: rate of the Poisson count that was subtracted.", "--l2")] = None
    base: Annotated[Number, parameter("Rounding: its base.")] = None
    below: Annotated[
        Number,
        parameter(
            "Suppression: positive counts below this number are hidden [default in a table: the "
            "smallest positive count shown]."
        ),
    ] = None
    lower: Annotated[Number, parameter("Interval: the smallest count that is hidden.")] = None
    upper: Annotated[Number, parameter("Interval: the largest count that is hidden, or inf.")] = None
    hides_zero: Annotated[bool, parameter("Suppression: zeros are hidden too.", "--hides-zero")] = False
    above: Annotated[
        Number, parameter("Top-coding: its bound. Thresholded noise: noisy values up to this number were left out.")
    ] = None
    probability: Annotated[Number, parameter("Randomised response: probability that a 0 or 1 was flipped.")] = None
    noise: Annotated[str | None, parameter("Thresholded noise: the mechanism that added it, such as gaussian.")] = None
    probabilities: Annotated[
        Path | None, parameter("Table: a .csv with P(report | count), a row for each count from 0.")
    ] = None

    @property
    def parameters(self) -> dict[str, Any]:
        """Those that ``stated_mechanism`` takes, by name."""
        found = self._asdict()
        del found["mechanism"], found["hides_zero"]
        return found

    @property
    def given(self) -> bool:
        """Whether any option was given."""
        return self != type(self)()

    def stated(self) -> Mechanism:
        """The mechanism; raises ValueError as ``stated_mechanism``."""
        return stated_mechanism(self.mechanism, self.hides_zero, self.parameters)


PROBABILITY = re.compile(r"[0-9]{1,20}(\.[0-9]{1,40}|/[1-9][0-9]{0,19})?", re.ASCII)


def stated_mechanism(kind: str | None, hides_zero: bool, given: Mapping[str, Any]) -> Mechanism:
    """The mechanism called ``kind``, of the options that were given (None where one was not).

    ``alpha`` alone states two-sided geometric noise, and so do ``epsilon`` and ``precision``.

    Raises:
        ValueError: no or another kind, an option that is missing or that the kind does not have, and what the
            mechanism says of its parameters.
    """
    there = {name: value for name, value in given.items() if value is not None}
    if kind is None and there and set(there) <= {"alpha", *LEVEL}:
        kind = "two-sided-geometric"
    if kind is not None and (kind in m.PRESETS or THEN in kind or " --" in kind):
        if there or hides_zero:
            further = " and ".join(f"--{name.replace('_', '-')}" for name in [*there, *["hides_zero"] * hides_zero])
            raise ValueError(
                f"--mechanism {kind!r:.60} must come without further options, got {further}: leave them out"
            )
        if kind in m.PRESETS:
            return m.preset(kind)
        return cast(Mechanism, mechanism_in_text("--mechanism", kind))
    if kind is None or kind not in KINDS:
        fitting = [name for name, (_, own) in KINDS.items() if set(own) == set(there)]
        if kind is None and fitting:
            has = " and ".join(f"--{name}" for name in there)
            raise ValueError(
                f"--mechanism must be one that has {has}, got none: add --mechanism {' or '.join(fitting)}"
            )
        raise ValueError(f"--mechanism must be one of {', '.join((*KINDS, *m.PRESETS))}, got {kind or 'none'}")
    noise: str = there.get("noise", "none")
    wanted = parameters_of(kind, there)
    if kind == "thresholded" and noise in KINDS:
        wanted = (*wanted, *parameters_of(noise, there))
    if hides_zero and kind != "suppression":
        raise ValueError(f"--hides-zero must come with --mechanism suppression, got {kind}")
    if set(there) != set(wanted) and (kind != "suppression" or there):
        options, got = ([f"--{name}" for name in names] for names in (wanted, sorted(there)))
        other = f", or {' and '.join(f'--{name}' for name in LEVEL)}" * ("alpha" in wanted)
        raise ValueError(
            f"--mechanism {kind} must come with {' and '.join(options)}{other}, got {', '.join(got) or 'none'}"
        )
    try:
        return made(kind, noise, hides_zero, there)
    except (TypeError, ValueError) as error:
        if str(error).split(" ", 1)[0] not in there:
            raise
        raise ValueError(f"--{error}") from error


def parameters_of(kind: str, there: Mapping[str, Any]) -> tuple[str, ...]:
    """The options that state the parameters of a mechanism: of two ways, the one of which some were given."""
    own = KINDS[kind][1]
    return LEVEL if own == ("alpha",) and not set(own) & set(there) and set(LEVEL) & set(there) else own


def made(kind: str, noise: str, hides_zero: bool, there: Mapping[str, Any]) -> Mechanism:
    """The mechanism of all options that it needs; raises as ``stated_mechanism``."""
    if kind == "thresholded":
        below = {name: there[name] for name in parameters_of(noise, there)} if noise in KINDS else {}
        if not below or "above" in below:
            raise ValueError(f"--noise must be the noise below the threshold, such as gaussian, got {noise!r}")
        return m.Thresholded(stated_mechanism(noise, False, below), exact("above", there["above"]))
    if kind == "table":
        return m.Table(read_probabilities(Path(there["probabilities"])))
    if kind == "two-sided-geometric" and "alpha" not in there:
        return m.TwoSidedGeometric.keeping(**there)
    if kind == "two-sided-geometric":
        return m.TwoSidedGeometric(cast(float, exact("alpha", there["alpha"])))  # any real number becomes one
    if kind == "interval" and there["upper"] == "inf":
        return m.Interval(there["lower"])
    values: dict[str, Any] = {name: exact(name, value) for name, value in there.items()}
    if kind == "suppression":
        values = {"below": None, "shows_zero": not hides_zero} | values
    return KINDS[kind][0](**values)


def check_in_column(given: Mapping[str, Any], long: str | None) -> bool:
    """Whether sigma is in a column of a long table; raises ValueError for other text without such a table."""
    text = given.get("sigma")
    if text is None:
        return False
    try:
        exact("sigma", text)
    except ValueError:
        if long is None:
            raise ValueError(
                f"--sigma must be a number, or with --long a column of the table, got {text!r:.60}"
            ) from None
        return True
    return False


def of_column(cells: "pd.DataFrame", axes: Sequence[str], options: MechanismOptions) -> tuple[Any, str | None]:
    """(the mechanism of all rows, None) if they share one sigma, else ({value: mechanism}, the column of values).

    That column is one of the axes if sigma goes by it, so that it is known of cells without a row too.

    Raises:
        ValueError: as ``stated_mechanism``.
    """
    column = options.sigma
    made = {sigma: options._replace(sigma=sigma).stated() for sigma in cells[column].unique()}
    if len(made) == 1:
        return next(iter(made.values())), None
    for axis in axes:
        pairs = cells[[axis, column]].drop_duplicates()
        if not pairs[axis].duplicated().any():
            return {value: made[sigma] for value, sigma in zip(pairs[axis], pairs[column], strict=True)}, axis
    return made, column


def mechanism_in_text(option: str, text: str) -> Mechanism | None:
    """A mechanism in one text, as options state it: "random-rounding --base 3", several with "then"; None for "exact".

    Raises:
        ValueError: another text, with the option's name, and as ``stated_mechanism``.
    """
    if THEN in text:
        return in_order(option, text)
    try:
        words = [part for word in shlex.split(text) for part in word.split("=", 1)]
    except ValueError as error:
        raise ValueError(f"{option} must be exact or a mechanism, got {text!r:.60}") from error
    if words == ["exact"]:
        return None
    hides_zero, names = ("--hides-zero" in words, {*LEVEL, *(name for _, own in KINDS.values() for name in own)})
    kind, *stated = [word for word in words if word != "--hides-zero"] or [""]
    options, values = stated[::2], stated[1::2]
    odd = next((name for name in options if name.removeprefix("--") not in names or name[:2] != "--"), None)
    if odd is not None or len(options) > len(values) or len(set(options)) < len(options):
        raise ValueError(
            f'{option} must be exact, or a mechanism with its options, such as "random-rounding --base 3", got '
            f"{text!r:.60}"
        )
    given = {name[2:]: value for name, value in zip(options, values, strict=True)}
    try:
        return stated_mechanism(kind, hides_zero, given)
    except ValueError as error:
        raise ValueError(f"{option} {text!r:.60}: {error}") from error


def in_order(option: str, text: str) -> Mechanism:
    """Rules in one text, in the order in which they were applied; raises ValueError for what are none."""
    steps = [mechanism_in_text(option, each.strip()) for each in text.split(THEN)]
    try:
        return m.Composed(*cast(list[Mechanism], steps))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{option} {text!r:.100}: {error}") from error


def read_probabilities(path: Path) -> tuple[tuple[Any, ...], ...]:
    """Rows of a .csv without a header: P(report r | count y) in row y, column r, both from 0."""
    if not path.is_file():
        raise FileNotFoundError(f"no table of probabilities at {path}")
    lines = [line for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    return tuple(tuple(probability(cell.strip()) for cell in line.split(",")) for line in lines)


def probability(text: str) -> Fraction:
    """A decimal, or a fraction such as 1/3, exactly; raises ValueError for anything else."""
    if not PROBABILITY.fullmatch(text):
        raise ValueError(f"probabilities must be decimals, or fractions such as 1/3, got {text[:40]!r}")
    return Fraction(text)


NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)
TABLE_COLUMNS = sorted({*LEVEL, *(name for _, names in KINDS.values() for name in names)} - {"probabilities"})
"""All that fit into a cell; a table of probabilities is in a file of its own."""
HIDES_ZERO = "hides-zero"
FROM, TO = " from", " to"


class MechanismTable:
    """Mechanisms by the value of one column: ``by`` is its name."""

    def __init__(self, path: Path) -> None:
        """Read a .csv or .tsv with a column ``mechanism``, columns of parameters, and values, or ends of ranges.

        Values are in a column called as that of the table; ranges, with both ends, in two, "date from" and "date to"
        for a column "date", of which an empty cell is no end.

        Raises:
            FileNotFoundError, ValueError: a file that cannot be read, other columns, or what is no mechanism.
        """
        if path.suffix.lower() not in (".csv", ".tsv"):
            raise ValueError(f"{path} must be a .csv or .tsv with a mechanism in each row")
        from countveil.data.tables.published import read_frame  # pandas takes long to import

        frame = read_frame(path).fillna("")
        frame.columns = frame.columns.astype(str).str.strip()
        keys = [name for name in frame.columns if name not in ("mechanism", HIDES_ZERO, *TABLE_COLUMNS)]
        self.path, self.ranged = path, len(keys) == 2
        self.by = keys[0].removesuffix(FROM) if self.ranged else keys[0] if keys else ""
        wanted = [self.by + FROM, self.by + TO] if self.ranged else [self.by]
        if keys != wanted or not self.by or len(set(frame.columns)) < len(frame.columns):
            raise ValueError(
                f"{path} must have one column besides mechanism and parameters, or two, such as "
                f"'date from' and 'date to', got {str(keys)[:200]}"
            )
        cells = [{name: str(cell).strip() for name, cell in row.items()} for row in frame.to_dict("records")]
        self.rows = [(tuple(row[key] for key in keys), self._mechanism(row)) for row in cells]

    def _mechanism(self, row: dict[str, str]) -> Mechanism:
        given = {name: row.get(name) or None for name in TABLE_COLUMNS}
        if row.get(HIDES_ZERO, "") not in ("", "yes", "no"):
            got = f"{row[HIDES_ZERO]!r:.40}"
            raise ValueError(f"{self.path} must have yes, no or nothing in column {HIDES_ZERO!r}, got {got}")
        try:
            return stated_mechanism(row.get("mechanism") or None, row.get(HIDES_ZERO) == "yes", given)
        except ValueError as error:
            said = " ".join(str(error).split())[:300]
            raise ValueError(f"{self.path} must state mechanisms as options do: {said}") from error

    def of(self, values: Sequence[str]) -> dict[str, Mechanism]:
        """The mechanism of every value.

        Raises:
            ValueError: a value with none, or with several; a range whose order as text is not that of its dates.
        """
        ends = [end for keys, _ in self.rows for end in keys if end]
        numeric = self.ranged and all(NUMBER.fullmatch(text) for text in (*ends, *values))
        if self.ranged and not numeric:
            self._check_order((*ends, *values))
        found = {}
        for value in dict.fromkeys(values):
            own = [each for keys, each in self.rows if self._holds(keys, value, numeric)]
            if len(own) != 1:
                raise ValueError(
                    f"{self.path} must have one mechanism for every {self.by!r:.60}, got {len(own)} for {value!r:.60}"
                )
            found[value] = own[0]
        return found

    def of_sides(self, rows: Sequence[str] | None, columns: Sequence[str] | None) -> Any:
        """The mechanisms of a wide table: (D, 1) where they go by "rows", (1, V) where they go by "columns".

        Raises:
            ValueError: another column, a side without labels, and as ``of``.
        """
        import numpy as np

        from countveil.data.tables.margins import SIDES

        if self.by not in SIDES:
            raise ValueError(
                f"{self.path} must have mechanisms by rows or by columns for a wide table, got {self.by!r:.60}"
            )
        labels = rows if self.by == SIDES[0] else columns
        if labels is None:
            raise ValueError(f"the table must have labels of {self.by}, which {self.path} names, got none")
        known, found = self.of(labels), np.empty(len(labels), dtype=object)
        found[:] = [known[label] for label in labels]
        return found[:, None] if self.by == SIDES[0] else found[None, :]

    def _check_order(self, texts: Sequence[str]) -> None:
        """Refuse texts whose digits have other places in some than in others, or that begin with a day or a month."""
        shapes = dict.fromkeys(re.sub(r"[0-9]", "0", text) for text in texts)
        if any("0" in shape for shape in shapes) and (
            len(shapes) > 1 or re.match(r"00?[^0A-Za-z]00?[^0]", next(iter(shapes)))
        ):
            raise ValueError(
                f"{self.path} must have ranges of {self.by!r:.60} in numbers, or in texts of one form in which larger "
                f"units come first, such as 2023-07-01, got {', '.join(list(shapes)[:2])} (0 for any digit)"
            )

    def _holds(self, keys: tuple[str, ...], value: str, numeric: bool) -> bool:
        if not self.ranged:
            return keys[0] == value
        first, last = keys
        if numeric:
            return (not first or float(first) <= float(value)) and (not last or float(value) <= float(last))
        return (not first or first <= value) and (not last or value <= last)
