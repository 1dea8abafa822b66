"""``countveil plan-trend``: how many people and waves it takes to see a change, before anybody is asked."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countveil.cli.options import read_any_level
from countveil.cli.output import plain_errors, say
from countveil.cli.plan import DEFAULT_LEVELS
from countveil.cli.results import Result, with_result
from countveil.privacy.level import Level
from countveil.privacy.study import load

if TYPE_CHECKING:
    import pandas as pd

    from countveil.planning import TrendPlan


@plain_errors
@with_result
def plan_trend(
    people: Annotated[int, typer.Option(help="Number of participants; each reports in every wave.")],
    total: Annotated[float, typer.Option(help="Expected total per person in the first wave, summed over --counts.")],
    change: Annotated[
        float, typer.Option(help="The change to detect, relative to the first wave: 0.1 is 10% more, -0.1 is 10% less.")
    ],
    per_wave: Annotated[
        bool, typer.Option("--per-wave", help="The change is per wave, not from the first to the last.")
    ] = False,
    waves: Annotated[int | None, typer.Option(help="Number of waves [default: the study's].")] = None,
    counts: Annotated[int, typer.Option(help="Number of noisy counts per person that are summed.")] = 1,
    study: Annotated[Path | None, typer.Option(help="A study file with the levels and waves.")] = None,
    level: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N:EPSILON", help="A level to try, or rho:RHO [default: the study's, or 1:1, 1:2, 1:3]. Repeatable."
        ),
    ] = None,
    variance_over_mean: Annotated[
        float,
        typer.Option(help="Variance over mean of one person's sum within a wave; above 1 for overdispersed counts."),
    ] = 1.0,
    spread: Annotated[
        float,
        typer.Option(help="Lasting differences between people: standard deviation over mean of their expected sums."),
    ] = 0.0,
    interval: Annotated[float, typer.Option(help="Probability of the interval that excludes zero.")] = 0.9,
    power: Annotated[float, typer.Option(help="Wanted probability of detecting the change.")] = 0.8,
) -> Result:
    """Find how many people and waves it takes to detect a change through the noise.

    Uses a formula for the sum of unbiased reports over all people: the change is detected if the interval for the
    slope of the least-squares line through the totals excludes zero. A model that borrows strength across items may
    need fewer people.

    These answers assume that the level per count stays fixed; a person's total privacy loss grows with the number of
    waves.

    Example: `countveil plan-trend --people 400 --waves 3 --total 2 --change 0.2 --level 1:1`
    """
    asked = None if study is None else load(study)
    levels: list[Level]
    if level or asked is None:
        levels = [read_any_level(text) for text in level or DEFAULT_LEVELS]
    else:
        levels = list(asked.levels)
    times = len(asked.waves) if asked is not None and waves is None else waves
    if not times:
        raise ValueError(f"waves must be given, by --waves or a study in waves, got {times}")
    from countveil import planning

    shared = total, change, per_wave, counts, variance_over_mean, spread
    plans = [planning.plan_trend(planning.Trend(each, people, times, *shared), interval, power) for each in levels]
    for plan in plans:
        say(str(plan))
    say(
        f"Seen: the {interval:.0%} interval for the change in the total excludes zero and has the sign of the change.\n"
        "This uses only totals: a model that borrows strength across items may need fewer people, but shrinks small "
        "changes towards zero."
    )
    return {"plan": table_of(plans), "interval": interval, "power": power}


def table_of(plans: "list[TrendPlan]") -> "pd.DataFrame":
    """A row per level: the change, the probability of seeing it, and what is enough."""
    import pandas as pd

    return pd.DataFrame(
        {
            "level": plan.trend.level.spelt(),
            "people": plan.trend.people,
            "waves": plan.trend.waves,
            "first": plan.trend.means[0],
            "last": plan.trend.means[-1],
            "probability": plan.probability,
            "enough_people": plan.people,
            "enough_people_without_noise": plan.people_without_noise,
            "enough_waves": plan.waves,
            "enough_level": None if plan.level is None else plan.level.spelt(),
            "adds_up_to": plan.trend.level.repeated(plan.trend.waves).in_numbers(),
        }
        for plan in plans
    )
