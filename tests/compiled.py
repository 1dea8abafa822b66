"""Where compiled kernels are kept between processes: the tests, the processes that they start and the site share it."""

from pathlib import Path

KERNELS = Path(__file__).parent.parent / "build" / "numba"
