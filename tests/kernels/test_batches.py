"""Space for batches: every array has room for all entries, and shares none of it."""

import itertools

import numpy as np
import pytest

from countveil.kernels.batches import BATCH, new_batch, new_expectations


@pytest.mark.parametrize(("space", "inner"), [(new_batch, 6), (new_expectations, 5)])
def test_each_array_has_room_of_its_own(space, inner):
    *arrays, rest = space()
    assert len(arrays) == 5
    assert len(rest) == inner
    assert {array.shape for array in (*arrays, *rest)} == {(BATCH,)}
    pairs = itertools.combinations((*arrays, *rest), 2)
    assert not any(np.shares_memory(one, other) for one, other in pairs)
    other, *_ = space()
    assert not np.shares_memory(arrays[0], other)
