"""Bayesian models of counts nobody was allowed to see.

Every public name is listed here and imported on first use, so that ``import countveil.privacy`` on a
participant's device needs the standard library alone.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME_OF = {
    "PrivacyLevel": "countveil.privacy",
    "Release": "countveil.privacy",
    "privatize": "countveil.privacy",
    "privatize_to_files": "countveil.privacy",
    "round_randomly": "countveil.privacy",
    "Privatizer": "countveil.bridges.privatizer",
    "simulate_release": "countveil.data.simulation",
    "PrivatizedCounts": "countveil.data.observations",
    "Reports": "countveil.data.reports",
    "ExactCounts": "countveil.data.observations",
    "NaiveCounts": "countveil.data.observations",
    "import_reports": "countveil.data.importing",
    "import_long": "countveil.data.importing",
    "join": "countveil.data.joining",
    "by_wave": "countveil.data.joining",
    "covariates_of": "countveil.data.reports",
    "ReleaseFiles": "countveil.data.release_files",
    "count_table": "countveil.data.frames",
    "graph_counts": "countveil.data.networks",
    "privatize_graph": "countveil.data.networks",
    "links_among": "countveil.data.networks",
    "read_counts": "countveil.data.io",
    "TopicModel": "countveil.fit",
    "BlockModel": "countveil.fit",
    "TensorModel": "countveil.fit",
    "DynamicModel": "countveil.fit",
    "PoissonFactorization": "countveil.fit",
    "load": "countveil.fit",
    "Gibbs": "countveil.inference.methods",
    "AugmentedGibbs": "countveil.inference.methods",
    "CAVI": "countveil.inference.methods",
    "BesselCAVI": "countveil.inference.methods",
    "SVI": "countveil.inference.methods",
    "EM": "countveil.inference.methods",
    "compare": "countveil.selection",
    "hold_out": "countveil.selection",
    "stack": "countveil.selection",
    "sample_true_counts": "countveil.bridges.true_counts",
    "sample_bursts": "countveil.bridges.true_counts",
    "expected_true_counts": "countveil.bridges.true_counts",
    "expected_bursts": "countveil.bridges.true_counts",
    "log_likelihood": "countveil.bridges.true_counts",
    "simulate_reports": "countveil.bridges.protected_counts",
    "sample_counts_given_totals": "countveil.bridges.counts_given_totals",
}
_MODULES = {
    "distributions": "countveil.distributions",
    "evaluation": "countveil.evaluation",
    "mechanisms": "countveil.privacy.mechanisms",
    "planning": "countveil.planning",
    "plotting": "countveil.plotting",
    "privacy": "countveil.privacy",
}

__all__ = ["__version__", *_HOME_OF, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    if name in _MODULES:
        return import_module(_MODULES[name])
    raise AttributeError(f"module 'countveil' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
