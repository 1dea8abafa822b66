"""The experiments of the papers, run again: one module per case study, named as on the command line."""

import importlib
from types import ModuleType

NAMES = (
    "theorems",
    "skellam",
    "true-counts",
    "theta-given-phi",
    "topics-synthetic",
    "blocks-synthetic",
    "communities-enron",
    "links-enron",
    "variational",
    "topics-enron",
    "blocks-semisynthetic",
    "topics-semisynthetic",
    "sensitivity",
)


def case_module(name: str) -> ModuleType:
    """The module of a case study: ``ABOUT``, ``NEEDS``, ``FULL``, ``QUICK`` and ``run(bench, plan)``.

    Raises:
        ValueError: no case study of that name.
    """
    if name not in NAMES:
        raise ValueError(f"name must be one of all, {', '.join(NAMES)}, got {name!r}")
    return importlib.import_module(f"papers.{name.replace('-', '_')}")
