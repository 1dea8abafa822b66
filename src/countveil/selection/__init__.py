"""Which model: cross-validation on reports that the fits did not see."""

from countveil.selection.compare import compare
from countveil.selection.comparison import Comparison

__all__ = ["Comparison", "compare"]
