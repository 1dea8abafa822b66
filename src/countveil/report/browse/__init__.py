"""One page on which a fit is browsed: topics, words, documents, bursts and a second fit, without network."""

from countveil.report.browse.page import render, write_browser

__all__ = ["render", "write_browser"]
