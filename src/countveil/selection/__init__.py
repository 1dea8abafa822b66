"""Which model, or how much of each: by reports that the fits did not see."""

from countveil.selection.compare import Comparison, compare
from countveil.selection.stack import Stack, hold_out, stack

__all__ = ["Comparison", "Stack", "compare", "hold_out", "stack"]
