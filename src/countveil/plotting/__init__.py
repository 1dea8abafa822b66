"""Pictures of fits, as matplotlib functions that return axes (extra ``plots``)."""

from countveil.plotting.compare import compare, differences
from countveil.plotting.curves import privacy_utility
from countveil.plotting.dynamics import activity, forecast, prevalence_over, seasons, transitions
from countveil.plotting.effects import effects, expected_prevalence
from countveil.plotting.factors import correlations, prevalence, topics
from countveil.plotting.networks import block_matrix, network
from countveil.plotting.posterior import trace, true_counts

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
