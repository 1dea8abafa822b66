import numpy as np
import pytest

from countveil.engines import blocks
from countveil.engines.blocks import put_together, row_blocks, summed
from countveil.engines.dask import grouped


def test_row_blocks_cover_every_row_once_whatever_the_size():
    for n_rows in (1, 16, 17, 255, 256, 257, 1000, 1024, 1025):
        found = row_blocks(n_rows)
        assert np.concatenate([np.arange(n_rows)[rows] for rows in found]).tolist() == list(range(n_rows))
        sizes = [rows.stop - rows.start for rows in found]
        assert max(sizes) <= blocks.MAX_ROWS_PER_BLOCK
        assert min(sizes[:-1], default=blocks.MIN_ROWS_PER_BLOCK) >= blocks.MIN_ROWS_PER_BLOCK
        assert len(found) >= min(blocks.BLOCKS_OF_SMALL_DATA, -(-n_rows // blocks.MIN_ROWS_PER_BLOCK))


@pytest.mark.parametrize(("n_rows", "n_columns", "number"), [(100, 80, 1), (400, 80, 2), (1000, 80, 4), (200, 1000, 4)])
def test_rows_of_few_columns_are_cut_no_finer_than_it_pays(n_rows, n_columns, number):
    found = row_blocks(n_rows, None, n_columns)
    assert len(found) == number
    assert number == 1 or (found[0].stop - found[0].start) * n_columns >= blocks.MIN_CELLS_PER_BLOCK


def test_sums_are_added_up_by_halves():
    parts = [1.0, 1e16, 1.0, 1.0, 1.0]
    found = (((), (np.array([x]),)) for x in parts)
    whole, (total,) = put_together(found, row_blocks(5, 1))
    assert whole == ()
    assert total.tolist() == [(parts[0] + parts[1]) + (parts[2] + (parts[3] + parts[4]))]
    assert total[0] != sum(parts)


@pytest.mark.parametrize("n_threads", [1, 2, 3, 8, 1000])
@pytest.mark.parametrize("n_blocks", [1, 2, 13, 40, 1000])
def test_groups_summed_up_alone_give_the_same_bits(n_blocks, n_threads):
    parts = np.random.default_rng(n_blocks).standard_normal(n_blocks)

    def arrays(values):
        return iter([(np.array([x]),) for x in values])

    groups = grouped(n_blocks, n_threads)
    sums = [summed(arrays(parts[group[0] : group[-1] + 1]), len(group))[0][0] for group in groups]
    assert summed(arrays(sums), len(sums)) == summed(arrays(parts), n_blocks)


@pytest.mark.parametrize("trailing", [(), (2,), (2, 3)])
def test_rows_come_back_where_they_belong(trailing):
    rows = np.arange(7 * np.prod(trailing, dtype=int), dtype=np.int32).reshape(7, *trailing)
    cut = row_blocks(7, 3)
    (whole,), sums = put_together(((((rows[part]),), ()) for part in cut), cut)
    assert sums == ()
    assert whole.dtype == rows.dtype
    assert np.array_equal(whole, rows)
