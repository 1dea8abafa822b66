"""How good a fit is: errors and scores of rates, calibration, quality of topics, alignment of components."""

from countveil.evaluation.errors import (
    coverage,
    coverage_of_reports,
    log_score,
    mean_absolute_error,
    poisson_divergence,
    predictive_log_score,
    randomised_pit,
    randomised_pit_of_reports,
)
from countveil.evaluation.topics import (
    align_draws,
    match_topics,
    npmi,
    npmi_by_topic,
    relevant_words,
    topic_error,
    umass,
    umass_by_topic,
)

__all__ = [
    "align_draws",
    "coverage",
    "coverage_of_reports",
    "log_score",
    "match_topics",
    "mean_absolute_error",
    "npmi",
    "npmi_by_topic",
    "poisson_divergence",
    "predictive_log_score",
    "randomised_pit",
    "randomised_pit_of_reports",
    "relevant_words",
    "topic_error",
    "umass",
    "umass_by_topic",
]
