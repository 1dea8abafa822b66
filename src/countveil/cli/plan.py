"""``countveil plan``: how much noise a study can bear, before anybody is asked for anything."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from countveil.cli import mechanism_options as m
from countveil.cli.options import MODEL, SAMPLER, Threads, number_or_word, read_any_level, with_option_groups
from countveil.cli.output import check_folder, plain_errors, read_table
from countveil.cli.results import Result, with_result
from countveil.privacy.study import Study, load

if TYPE_CHECKING:
    from countveil.planning.simulate import Protection
    from countveil.planning.truths import Source

DEFAULT_LEVELS = ("1:1", "1:2", "1:3")
TRUTHS = ("model", "pilot")


@plain_errors
@with_result
@with_option_groups
def plan_study(
    pilot: Annotated[
        Path | None,
        typer.Argument(help="Counts of a pilot, public or your own: .csv, .npy, .npz or .mtx, one record per row."),
    ] = None,
    *,
    topics: Annotated[int, typer.Option("--topics", "-k", min=1, help="Number of topics K.")] = 10,
    study: Annotated[Path | None, typer.Option(help="A study file with the levels and the number of words.")] = None,
    words: Annotated[
        int | None, typer.Option(min=2, help="Number of words, if there is neither a study nor a pilot.")
    ] = None,
    total: Annotated[
        float | None, typer.Option(help="Expected sum of one person's counts, if there is no pilot [default: 100].")
    ] = None,
    level: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N:EPSILON", help="A level to try, or rho:RHO [default: the study's, or 1:1, 1:2, 1:3]. Repeatable."
        ),
    ] = None,
    mechanism: m.MechanismOptions,
    rows: Annotated[
        list[int] | None,
        typer.Option(
            help="A number of participants to try [default: 100, 300 and 1000; with a pilot, half, all and twice its "
            "rows, or with --truth pilot a quarter, half and all]. Repeatable."
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEASURE:VALUE",
            help="Find the number of participants at which a measure reaches a value, such as topic_error:0.3. "
            "Repeatable.",
        ),
    ] = None,
    truth: Annotated[
        str, typer.Option(help='Draw true counts from a model of the pilot ("model") or from its rows ("pilot").')
    ] = "model",
    method: Annotated[
        str, typer.Option(rich_help_panel=SAMPLER, help='"gibbs", or "em": faster, without intervals.')
    ] = "gibbs",
    likelihood: Annotated[
        str,
        typer.Option(
            rich_help_panel=MODEL,
            help='"poisson", or "negative-binomial" for overdispersed counts, such as words in real text: for the fits '
            "and for true counts drawn from a model.",
        ),
    ] = "poisson",
    dispersion: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=MODEL,
            help='With a pilot: share one dispersion p ("global"), or fit one per "column" [default with gibbs] or '
            '"row"; or a known p. Without a pilot: the p of the true counts, such as 0.6, which the fits estimate.',
        ),
    ] = None,
    replicates: Annotated[int, typer.Option(min=2, help="Number of simulated studies of each size.")] = 3,
    output: Annotated[Path, typer.Option("--output", "-o", help="Directory for the files.")] = Path("countveil-plan"),
    threads: Threads = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the whole simulation, including its noise.")] = 1,
) -> Result:
    """Simulate how much noise a study can bear and how many participants it needs.

    Simulates the true counts of participants, adds noise, fits, and compares with the truth: error of the rates,
    recovery of the topics, width of the intervals, and whether a naive analysis would mislead. Without a pilot, true
    counts come from the prior of the model, in which word frequencies are more even than in real text: use a pilot if
    you can. Nothing is released, but the pilot is fitted without noise, so it must be public or your own. `--mechanism`
    simulates any mechanism that `countveil import` knows, alone or alongside levels.

    Writes plan.csv (means and standard errors), fits.csv, plan.png and plan.svg, and replaces those of an earlier plan.

    Example: `countveil plan pilot.npz --topics 20 --level 1:1 --level 1:3 --target topic_error:0.4`
    """
    from countveil.engines.threads import available_threads
    from countveil.planning import Grid
    from countveil.planning.answers import present, read_target, summary

    check_folder(output)
    asked = None if study is None else load(study)
    targets = [read_target(text) for text in target or []]
    levels = read_levels(level, asked, mechanism)
    p = number_or_word(dispersion)
    settings = fit_settings(method) | {"likelihood": likelihood}
    check_source(pilot, asked, words, total, truth)
    check_bursts(method, likelihood, p, pilot is not None)
    if pilot is None:
        source, sizes = source_without_pilot(topics, asked, words, total, p)
    else:
        settings["dispersion"] = p
        counted: dict[str, Any] = {"likelihood": likelihood, "dispersion": p}
        source, sizes = source_of_pilot(read_pilot(pilot, asked), topics, truth, seed, **counted)
    grid = Grid(levels, rows or sizes, replicates, seed, threads or available_threads())
    fits = present(grid, source, targets, output, **settings)
    return {"plan": summary(fits), "output": str(output)}


def read_levels(level: list[str] | None, asked: Study | None, mechanism: m.MechanismOptions) -> "list[Protection]":
    """The levels and the mechanism named; else the study's levels, or the default ones."""
    found: list[Protection] = [read_any_level(text) for text in level or []]
    if mechanism.given:
        if mechanism.mechanism == "suppression" and mechanism.below is None:
            raise ValueError("--mechanism suppression must come with --below, since no counts are shown that bound it")
        found.append(mechanism.stated())
    if found:
        return found
    return list(asked.levels) if asked is not None else [read_any_level(text) for text in DEFAULT_LEVELS]


def fit_settings(method: str) -> dict[str, object]:
    """Arguments of TopicModel for a method by name."""
    if method == "gibbs":
        return {}
    if method == "em":
        return {"method": "em"}
    raise ValueError(f"method must be gibbs or em, got {method!r}")


def check_source(pilot: Path | None, asked: Study | None, words: int | None, total: float | None, truth: str) -> None:
    """Refuse options that do not go together in saying where true counts come from."""
    if truth not in TRUTHS:
        raise ValueError(f"truth must be one of {', '.join(TRUTHS)}, got {truth!r}")
    if asked is not None and len(asked.axes) != 1:
        raise ValueError(f"a study to plan must have one axis of counts, got {len(asked.axes)}")
    if pilot is None and truth == "pilot":
        raise ValueError("truth 'pilot' needs a pilot corpus, got none")
    if pilot is not None and (words is not None or total is not None):
        raise ValueError("leave out --words and --total with a pilot, which has both; got one of them")


def check_bursts(method: str, likelihood: str, dispersion: str | float | None, pilot: bool) -> None:
    """Refuse bursts that the method does not take, a dispersion without them, and a prior's without a number."""
    from countveil.inference.methods import METHODS, check_likelihood
    from countveil.laws.counts import NegativeBinomial

    bursty = likelihood == NegativeBinomial.name
    if dispersion is not None and not bursty:
        raise ValueError(f"dispersion requires likelihood {NegativeBinomial.name!r}, got {likelihood!r}")
    if bursty:
        check_likelihood(METHODS[method](), NegativeBinomial())
    if bursty and not pilot and not isinstance(dispersion, float):
        raise ValueError(f"dispersion must be a number if there is no pilot, got {dispersion!r}")


def source_without_pilot(
    topics: int, asked: Study | None, words: int | None, total: float | None, dispersion: str | float | None = None
) -> "tuple[Source, list[int]]":
    """True counts from the prior, and the numbers of rows to try by default."""
    from countveil.planning import FromPrior

    n_words = words if asked is None else asked.cells
    if n_words is None or (words is not None and words != n_words):
        raise ValueError(f"give the words exactly once, by a pilot, --study or --words, got {words}")
    p = None if dispersion is None else float(dispersion)
    return FromPrior(topics, n_words, 100.0 if total is None else total, p), [100, 300, 1000]


def source_of_pilot(counts: Any, topics: int, truth: str, seed: int, **settings: Any) -> "tuple[Source, list[int]]":
    """True counts from a pilot or a model of it, and the numbers of rows to try by default."""
    from countveil.planning import FromModel, FromPilot

    n = int(counts.shape[0])
    if truth == "pilot":
        return FromPilot(counts, topics, seed, **settings), sorted({max(2, n // 4), max(2, n // 2), n})
    return FromModel(counts, topics, seed, **settings), sorted({max(2, n // 2), n, 2 * n})


def read_pilot(path: Path, asked: Study | None) -> Any:
    """A pilot's counts, with as many columns as the study has."""
    counts = read_table(path).values
    if asked is not None and counts.shape[1] != asked.cells:
        raise ValueError(f"{path} must have the study's {asked.cells} columns, got {counts.shape[1]}")
    return counts
