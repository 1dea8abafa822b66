"""What pictures are of: objects that are known by their methods alone, so that models may use pictures too."""

from typing import Any

Fit = Any
"""A fitted model (``fit.base.FactorizationEstimator``)."""

Network = Any
"""Communities of actors and what they send each other (``fit.networks.Network``)."""
