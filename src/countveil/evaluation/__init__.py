"""How good a fit is: errors and scores of rates, quality of topics, alignment of components."""

from countveil.evaluation.alignment import align_draws, match_topics, topic_error
from countveil.evaluation.errors import log_score, mean_absolute_error
from countveil.evaluation.topics import npmi, npmi_by_topic, relevant_words

__all__ = [
    "align_draws",
    "log_score",
    "match_topics",
    "mean_absolute_error",
    "npmi",
    "npmi_by_topic",
    "relevant_words",
    "topic_error",
]
