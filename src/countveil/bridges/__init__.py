"""Counts given reports and rates, for models of one's own: in NumPy, PyMC, NumPyro and scikit-learn's pipelines."""
