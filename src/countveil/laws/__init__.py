"""Distributions of reports given counts, and of counts given rates."""
