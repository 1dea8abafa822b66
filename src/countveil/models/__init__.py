"""Rates as functions of nonnegative factors, and the factors' priors; no algorithm and no noise."""
