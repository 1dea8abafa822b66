"""``countveil audit``: whether the noise that was shipped keeps its promise."""

from pathlib import Path
from typing import Annotated

import typer

from countveil.cli.options import read_any_level
from countveil.cli.output import plain_errors, say
from countveil.cli.results import Failed, Result, with_result
from countveil.privacy.exact import short
from countveil.privacy.level import Level
from countveil.privacy.study import load


@plain_errors
@with_result
def audit_noise(
    level: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N:EPSILON",
            help="A level to audit, also as rho:RHO [default: 10:1, 1:1, 1:4 and rho:0.125]. Repeatable.",
        ),
    ] = None,
    study: Annotated[Path | None, typer.Option(help="A study file: audit its levels.")] = None,
) -> Result:
    """Check that the installed noise generator delivers the promised privacy.

    Draws noise by every route from counts to reports: arrays, sparse matrices, a participant's report file. Tests its
    distribution (alpha or sigma, both signs, zeros, counts of 2^53, 2^60 and 2^62) and that no random number is used
    twice. Computes lower confidence bounds on epsilon or rho between neighbouring counts. Tests that a file's bytes
    depend only on its noisy counts. For each check, prints the deviation that it detects with 99% probability. The exit
    status is 1 if a check fails; a false alarm has a probability below 1 in 100,000. Takes about half a minute.

    Example: `countveil audit --level 10:1`
    """
    from countveil.study.audit import audit
    from countveil.study.audit.checks import LEVELS

    levels: list[Level] = [read_any_level(text) for text in level or []]
    levels += load(study).levels if study is not None else ()
    failed, checks = 0, []
    for finding in audit(levels or LEVELS):
        failed += not finding.passed
        named = finding.level.numbers().items()
        said = ", ".join(
            f"{'N' if name == 'precision' else name}={short(number)}" for name, number in sorted(named)[::-1]
        )
        say(
            f"{'PASS' if finding.passed else 'FAIL'}  {finding.route}, {finding.check} ({said}): {finding.seen}; "
            f"detects {finding.power}"
        )
        numbers = {name: float(number) for name, number in finding.level.numbers().items()}
        what = {"route": finding.route, "check": finding.check, **numbers}
        checks.append({**what, "passed": finding.passed, "seen": finding.seen, "detects": finding.power})
    say(f"{len(checks) - failed} of {len(checks)} checks passed.")
    found: Result = {"checks": checks, "failed": failed}
    if failed:
        raise Failed(found)
    return found
