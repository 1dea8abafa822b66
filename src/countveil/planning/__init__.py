"""Before a study: how much noise it can bear, and how many participants it needs, by simulation."""

from countveil.planning.answers import Target, misleads, participants, summary
from countveil.planning.simulate import Grid, simulate
from countveil.planning.trend import Trend, TrendPlan, plan_trend
from countveil.planning.truths import FromModel, FromPilot, FromPrior, Truth

__all__ = [
    "FromModel",
    "FromPilot",
    "FromPrior",
    "Grid",
    "Target",
    "Trend",
    "TrendPlan",
    "Truth",
    "misleads",
    "participants",
    "plan_trend",
    "simulate",
    "summary",
]
