"""Pictures of fits, as matplotlib functions that return axes (extra ``plots``)."""

from countveil.plotting.compare import compare
from countveil.plotting.comparisons import differences
from countveil.plotting.correlations import correlations
from countveil.plotting.curves import privacy_utility
from countveil.plotting.dynamics import activity, seasons
from countveil.plotting.effects import effects, expected_prevalence
from countveil.plotting.factors import prevalence, topics
from countveil.plotting.forecasts import forecast
from countveil.plotting.networks import block_matrix, network
from countveil.plotting.over_time import prevalence_over
from countveil.plotting.posterior import trace, true_counts
from countveil.plotting.transitions import transitions

__all__ = [
    "activity",
    "block_matrix",
    "compare",
    "correlations",
    "differences",
    "effects",
    "expected_prevalence",
    "forecast",
    "network",
    "prevalence",
    "prevalence_over",
    "privacy_utility",
    "seasons",
    "topics",
    "trace",
    "transitions",
    "true_counts",
]
