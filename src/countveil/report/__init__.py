"""One page about a fit, for people who read results and not code (extra ``report``)."""

from countveil.report.loading import load_fit
from countveil.report.page import render, write_report

__all__ = ["load_fit", "render", "write_report"]
