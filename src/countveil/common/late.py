"""scikit-learn's estimators without all of SciPy's distributions, which are half of the time that importing them takes.

scikit-learn imports ``scipy.stats`` at once and uses it for a mode that no estimator here asks for. While it is
imported, an empty module stands there. Whoever asks that one for a name gets it from the true module, which everybody
imports from then on.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

NAME = "scipy.stats"


class Late(ModuleType):
    """A module in place of ``scipy.stats`` that imports it when it is asked for a name."""

    def __getattr__(self, name: str) -> Any:
        drop(self)
        return getattr(import_module(NAME), name)


def drop(module: ModuleType) -> None:
    """Forget a module, so that the next import finds the true one."""
    if sys.modules.get(NAME) is module:
        del sys.modules[NAME]


def import_estimators() -> None:
    """Import ``sklearn.base``, and not ``scipy.stats`` along with it."""
    if NAME in sys.modules or "sklearn" in sys.modules:
        return
    standing = Late(NAME)
    sys.modules[NAME] = standing
    try:
        import_module("sklearn.base")
    finally:
        drop(standing)


import_estimators()
