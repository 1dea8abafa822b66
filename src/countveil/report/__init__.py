"""One page about a fit, for people who read results and not code (extra ``report``)."""

from countveil.report.checklist import checklist_of
from countveil.report.page import render, write_report

__all__ = ["checklist_of", "render", "write_report"]
