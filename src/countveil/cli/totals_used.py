"""Which totals a fit used, said by the commands that print a fit."""

from typing import TYPE_CHECKING

from countveil.cli.say import say

if TYPE_CHECKING:
    from countveil.fit.base import FactorizationEstimator


def print_totals_used(model: "FactorizationEstimator") -> None:
    """How many totals beside the reports were exact and how many were not, and which families they are of."""
    facts = model.posterior.attrs
    if "known_totals" in facts:
        say(f"{facts['known_totals']:,} exact totals, all met.")
    if "noisy_totals" in facts:
        say(f"{facts['noisy_totals']:,} noisy totals.")
    if "totals_used" in facts:
        say(f"Totals used: {facts['totals_used']}.")
