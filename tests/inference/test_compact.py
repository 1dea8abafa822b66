import math
import os

import h5py
import numpy as np
import pytest
import xarray as xr

import countveil as cv
from countveil.data.simulation import simulate_release
from countveil.inference import compact

pytestmark = pytest.mark.long

SHORT = {"draws": 12, "tune": 4, "chains": 2, "seed": 1, "progress": False, "threads": 1}


def rounded_slowly(draws):
    """``rounded`` one number after another."""
    found = draws.copy()
    for place in np.ndindex(draws.shape[1:]):
        entry = draws[(slice(None), *place)]
        spread = float(np.std(entry.astype(np.float64)))
        if spread == 0.0:
            continue
        m = math.frexp(max(spread, 2.0**-80))[1] - 1
        for s, x in enumerate(entry.astype(np.float64)):
            step = 2.0 ** (m - 4)
            if x >= step:
                value = round(x / step) * step
            else:
                value = max(2.0 ** round(math.log2(max(x, 2.0**-126))), 2.0 ** (m - 12))
            found[(s, *place)] = value
    return found


def gammas(*shape):
    """Draws of entries of many sizes: some far from zero, others nearly always next to it."""
    rng = np.random.default_rng(1)
    sizes = 10.0 ** rng.uniform(-6.0, 3.0, shape[1:])
    return np.maximum(rng.gamma(rng.choice([0.05, 1.0, 500.0], shape[1:]), sizes, shape), 1e-38).astype("f4")


def test_draws_are_rounded_as_the_file_says():
    draws = gammas(40, 6, 5)
    draws[:, 0, 0] = np.float32(1 / 3)  # an entry that never changes
    found = compact.rounded(draws)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, rounded_slowly(draws))
    np.testing.assert_array_equal(found[:, 0, 0], draws[:, 0, 0])


def test_a_rounded_draw_lies_within_a_32nd_of_a_standard_deviation():
    draws = gammas(400, 30, 5)
    spread, found = draws.std(axis=0, dtype=np.float64), compact.rounded(draws)
    assert (np.abs(found - draws.astype(np.float64)) <= spread * (1.0 / 32.0 + 1e-6)).all()
    assert (found > 0.0).all()
    assert np.abs(found.mean(axis=0) - draws.mean(axis=0)).max(initial=0.0, where=spread > 0) > 0.0
    moved = np.abs(found.mean(axis=0, dtype=np.float64) - draws.mean(axis=0, dtype=np.float64)) / spread
    assert moved.max() < 0.01  # a fifth of the Monte Carlo error of 400 independent draws
    np.testing.assert_allclose(found.std(axis=0, dtype=np.float64), spread, rtol=0.01)


@pytest.mark.parametrize("sizes", [(1,), (7,), (5, 3), (64, 10), (3, 4, 5)])
@pytest.mark.parametrize("most", [1, 8, 50, 10**6])
def test_slabs_tile_an_array(sizes, most):
    chunks, seen = compact.pieces_of(sizes, 4), np.zeros(sizes, int)
    assert np.prod(chunks) <= 4
    for place in compact.slabs(sizes, chunks, most):
        seen[place] += 1
        assert all(part.start % chunk == 0 for part, chunk in zip(place, chunks, strict=True))
    assert (seen == 1).all()


def fits():
    """A fit of every kind of factor: of topics, a network (used twice) and a tensor."""
    rng = np.random.default_rng(3)
    tables = rng.poisson(2.0, (9, 7)), rng.poisson(2.0, (6, 6)), rng.poisson(1.0, (4, 3, 5))
    models = cv.TopicModel(3, **SHORT), cv.BlockModel(2, **SHORT), cv.TensorModel(2, **SHORT)
    for model, counts in zip(models, tables, strict=True):
        labels = {"row_labels": [f"d{i}" for i in range(9)]} if counts.shape == (9, 7) else {}
        level = cv.PrivacyLevel(1, 1)
        yield model.fit(simulate_release(counts, level, np.random.default_rng(4), truncate=False, **labels))


def test_a_packed_fit_comes_back_rounded_and_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(compact, "MOST_EXACT", 0)
    monkeypatch.setattr(compact, "LEAST_DRAWS", 2)
    for fit in fits():
        before = fit.posterior.copy(deep=True)
        fit.save(tmp_path / "fit.nc")
        xr.testing.assert_identical(fit.posterior, before)  # what is in memory is not rounded
        back = type(fit).load(tmp_path / "fit.nc")
        assert back.posterior.attrs["rounded"] == 1
        ours, theirs = fit.posterior["posterior"], back.posterior["posterior"]
        assert set(ours.variables) == set(theirs.variables)
        for name, values in ours.data_vars.items():
            assert theirs[name].dims == values.dims
            assert theirs[name].to_numpy().flags.c_contiguous
            wanted = values.to_numpy()
            if wanted.dtype == np.float32:
                wanted = np.stack([compact.rounded(chain) for chain in wanted])
                assert (wanted != values.to_numpy()).any()
            np.testing.assert_array_equal(theirs[name].to_numpy(), wanted)
            for dim in values.dims:
                np.testing.assert_array_equal(theirs[dim], ours[dim])
        for group in ("sample_stats", "constant_data"):
            xr.testing.assert_equal(back.posterior[group].dataset, fit.posterior[group].dataset)
        np.testing.assert_allclose(back.rate(), fit.rate(), rtol=0.05)


def test_what_is_rounded_is_not_rounded_again(tmp_path, monkeypatch):
    monkeypatch.setattr(compact, "MOST_EXACT", 0)
    monkeypatch.setattr(compact, "LEAST_DRAWS", 2)
    fit = next(fits())
    fit.posterior.attrs["rounded"] = 1
    fit.save(tmp_path / "fit.nc")
    back = cv.TopicModel.load(tmp_path / "fit.nc")
    xr.testing.assert_equal(back.posterior["posterior"].dataset, fit.posterior["posterior"].dataset)


def test_small_fits_and_exact_files_keep_every_bit(tmp_path, monkeypatch):
    fit = next(fits())
    fit.save(tmp_path / "small.nc")
    monkeypatch.setattr(compact, "MOST_EXACT", 0)
    fit.save(tmp_path / "few.nc")  # fewer draws than a standard deviation takes
    monkeypatch.setattr(compact, "LEAST_DRAWS", 2)
    fit.save(tmp_path / "exact.nc", exact=True)
    for name in ("small.nc", "few.nc", "exact.nc"):
        back = cv.TopicModel.load(tmp_path / name)
        assert "rounded" not in back.posterior.attrs
        xr.testing.assert_equal(back.posterior["posterior"].dataset, fit.posterior["posterior"].dataset)


def test_packed_draws_take_less_than_a_third(tmp_path):
    draws = np.stack([gammas(500, 100, 10) for _ in range(5)])
    dims = ("chain", "draw", "doc", "topic")
    coordinates = {dim: np.arange(size) for dim, size in zip(dims, draws.shape, strict=True)}
    posterior = xr.Dataset({"theta": (dims, draws)}, coords=coordinates)
    compact.write(xr.DataTree.from_dict({"posterior": posterior}), tmp_path / "fit.nc")
    assert os.path.getsize(tmp_path / "fit.nc") < 0.3 * draws.nbytes
    with h5py.File(tmp_path / "fit.nc") as file:
        assert file["posterior/theta"].shape == (5, 100, 10, 500)


def test_a_file_says_whether_it_is_rounded_as_yes_or_no(tmp_path):
    fit = next(fits())
    fit.posterior.attrs["rounded"] = 7
    fit.save(tmp_path / "fit.nc")
    with pytest.raises(ValueError, match="must state its rounded as 0 or 1, got 7"):
        cv.TopicModel.load(tmp_path / "fit.nc")
