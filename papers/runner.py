"""A reproduction from beginning to end: run the case studies, write their files, print what became of the claims."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich import box
from rich.table import Table

from countveil.common.console import ProgressWatcher, console, error_console
from countveil.common.files import write_csv
from papers import case_module, style
from papers.bench import Bench, Study
from papers.claims import FAILS, HOLDS, Verdict, untested
from papers.fits import Sampling

STYLE = {HOLDS: "bold green", FAILS: "bold red"}


def present(
    names: Sequence[str],
    output: Path,
    data: Path | None,
    quick: bool,
    seed: int,
    repeats: int | None = None,
    sweeps: int | None = None,
) -> dict[str, list[Verdict]]:
    """Run case studies, write NAME.png, NAME.svg, NAME.csv and NAME-verdicts.csv for each, and print all verdicts.

    One that needs real counts is left out, its claims not tested, if others were asked for and there are no data.
    ``repeats`` is at most how many noise draws or data sets to go through, ``sweeps`` at most how many each chain has.

    Raises:
        FileNotFoundError: a single case study without the data that it needs.
        ModuleNotFoundError: matplotlib is missing.
        OSError: ``output`` cannot be written to.
        ValueError: an unknown name, or data that cannot be used.
    """
    found: dict[str, list[Verdict]] = {}
    output.mkdir(parents=True, exist_ok=True)
    for name in names:
        module = case_module(name)
        if module.NEEDS and data is None:
            reason = f"needs {module.NEEDS}: pass its folder with --data"
            if len(names) == 1:
                raise FileNotFoundError(f"{name} {reason}")
            found[name] = [untested(module.ABOUT, reason)]
            continue
        with ProgressWatcher(error_console()) as watcher:
            bench = Bench(name, output / "fits", data, seed, watcher)
            study = module.run(bench, at_most(module.QUICK if quick else module.FULL, repeats, sweeps))
        write_files(study, name, output)
        found[name] = study.verdicts
    screen = console()
    screen.print(verdict_table(found))
    screen.print(f"Wrote figures, numbers and verdicts to {output}", highlight=False, soft_wrap=True)
    return found


def at_most(plan: Any, repeats: int | None, sweeps: int | None = None) -> Any:
    """A plan with its numbers of noise draws, data sets and sweeps cut to these; others stay as they are."""
    if repeats is not None:
        fields = [field for field in ("noise_draws", "data_sets") if field in plan._fields]
        plan = plan._replace(**{field: min(repeats, getattr(plan, field)) for field in fields})
    if sweeps is not None:
        chains = {field: value for field, value in plan._asdict().items() if isinstance(value, Sampling)}
        plan = plan._replace(**{field: value.at_most(sweeps) for field, value in chains.items()})
    return plan


def write_files(study: Study, name: str, output: Path) -> None:
    """The figure in both formats, the numbers and the verdicts; each is replaced in one step."""
    style.save(study.figure, [output / f"{name}.png", output / f"{name}.svg"])
    for frame, ending in ((study.numbers, ".csv"), (pd.DataFrame(study.verdicts), "-verdicts.csv")):
        write_csv(frame, output / f"{name}{ending}")


def verdict_table(found: dict[str, list[Verdict]]) -> Table:
    """Every claim with what became of it."""
    table = Table(title="What became of the papers' claims", title_justify="left", header_style="", box=box.SIMPLE_HEAD)
    table.add_column("case study", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("claim, and what was measured")
    for name, verdicts in found.items():
        for place, each in enumerate(verdicts):
            table.add_row(
                "" if place else name,
                f"[{STYLE.get(each.outcome, 'dim')}]{each.outcome}[/]",
                f"{each.claim}\n[dim]{each.measured}[/]",
                end_section=place == len(verdicts) - 1,
            )
    return table
