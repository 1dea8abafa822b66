"""Codes of reports for tests: code i + 1 stands for report i."""

import numpy as np

from countveil.laws.noise.any_mechanism import kernels_of, said_by


def kernels_of_reports(mechanism, reports):
    said = said_by(mechanism, np.array(reports, float))
    return kernels_of(said, np.arange(len(reports))[:, None])
