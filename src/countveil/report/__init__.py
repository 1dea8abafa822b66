"""One page about a fit, for people who read results and not code (extra ``report``)."""

from countveil.report.checklist import checklist_of
from countveil.report.loading import load_fit
from countveil.report.page import render, write_report

__all__ = ["checklist_of", "load_fit", "render", "write_report"]
