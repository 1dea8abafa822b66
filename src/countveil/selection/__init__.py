"""Which model, or how much of each: by reports that the fits did not see."""

from countveil.selection.compare import compare
from countveil.selection.comparison import Comparison
from countveil.selection.holding_out import hold_out
from countveil.selection.stack import Stack, stack

__all__ = ["Comparison", "Stack", "compare", "hold_out", "stack"]
