import numpy as np
import pytest

import countveil as cv
from countveil.data.accepted import observations_of
from tests.commands import SHORT, fails, run
from tests.data.same import assert_same

m = cv.mechanisms
SOURCE = ("--source", "Others, 2020")
RNG = np.random.default_rng(5)
COUNTS = RNG.poisson(RNG.gamma(0.5, 20.0, (12, 4)))
HIDDEN = ("--mechanism", "suppression", "--below", "10", "--absent", "Suppressed", *SOURCE)


def words(value):
    return "Suppressed" if 0 < value < 10 else str(value)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the same table, wide and long."""
    monkeypatch.chdir(tmp_path)
    lines = [f"county{i}," + ",".join(map(words, row)) for i, row in enumerate(COUNTS)]
    (tmp_path / "wide.csv").write_text("\n".join(["county,a,b,c,d", *lines]))
    cells = [f"county{i:02d},{'abcd'[j]},{words(value)}" for (i, j), value in np.ndenumerate(COUNTS)]
    (tmp_path / "long.csv").write_text("\n".join(["county,age,deaths", *cells]))
    return tmp_path


def published():
    return np.where((COUNTS > 0) & (COUNTS < 10), np.nan, COUNTS)


def test_a_table_is_imported_fitted_compared_and_reported(here):
    said = run("import", "wide.csv", "-o", "r.npz", *HIDDEN).stdout
    assert "Imported from: Others, 2020. Whoever imported them vouches for the mechanism" in said
    assert "Wrote r.npz: 12 x 4 reports, imported." in said
    release = cv.Release.load("r.npz")
    assert release.labels == (tuple(f"county{i}" for i in range(12)), tuple("abcd"))
    np.testing.assert_array_equal(release.reports, published())

    said = run("fit", "topics", "r.npz", "-o", "f.nc", *SHORT).stdout
    assert "These reports were imported from: Others, 2020." in said
    run("report", "f.nc", "-o", "f.html", "--release", "r.npz")
    page = (here / "f.html").read_text()
    assert "The reports were imported from: Others, 2020. Whoever imported them vouches" in page
    assert "reports imported from" in page
    assert "release was not given" not in page
    assert (
        "Wrote"
        in run("compare", "r.npz", "--topics", "1,2", "--folds", "2", "-o", "c.csv", *SHORT[2:]).stdout
    )

    same = cv.TopicModel(2, draws=20, tune=10, chains=2, seed=1, threads=1, progress=False)
    same.fit(cv.Reports(published(), m.Suppression(10)))
    np.testing.assert_array_equal(same.components_, cv.TopicModel.load("f.nc").components_)


def test_long_tables_become_tensors_or_matrices(here):
    run("import", "long.csv", "-o", "r.npz", "--long", "county,age", "--value", "deaths", *HIDDEN)
    release = cv.Release.load("r.npz")
    np.testing.assert_array_equal(release.reports, published())
    assert release.labels[1] == tuple("abcd")
    assert "--long and --value must come together" in fails(
        "import", "long.csv", "-o", "s.npz", "--long", "county,age", *HIDDEN
    )
    assert "without --no-header" in fails(
        *(
            "import",
            "long.csv",
            "-o",
            "s.npz",
            "--long",
            "county,age",
            "--value",
            "deaths",
            "--no-header",
            *HIDDEN,
        )
    )


def test_two_sided_geometric_noise_needs_its_alpha_alone(here):
    reports = cv.simulate_reports(COUNTS, m.TwoSidedGeometric(0.37), np.random.default_rng(2))
    np.savetxt("n.csv", reports, fmt="%d", delimiter=",")
    run("import", "n.csv", "-o", "r.npz", "--alpha", "0.37", "--no-header", *SOURCE)
    assert_same(observations_of(cv.Release.load("r.npz")), cv.Reports(reports, m.TwoSidedGeometric(0.37)))


def test_what_is_wrong_is_said_in_one_line_and_nothing_is_written(here):
    assert "got 'Suppressed' in row" in fails("import", "wide.csv", "-o", "r.npz", *HIDDEN[:4], *SOURCE)
    (here / "low.csv").write_text("county,a\nx,4\n")
    assert "reports must be 0, at least 10" in fails("import", "low.csv", "-o", "r.npz", *HIDDEN)
    assert "source must be" in fails("import", "wide.csv", "-o", "r.npz", *HIDDEN[:-1], "")
    assert not (here / "r.npz").exists()


def test_other_commands_point_here(here):
    assert "`countveil import` makes a release" in fails("fit", "topics", "wide.csv", "-o", "f.nc")
    assert "`countveil import`" in fails(
        "privatize", "wide.csv", "-o", "r.npz", "--epsilon", "1", "--precision", "2"
    )


def test_impossible_reports_in_a_release_are_refused_by_name(here):
    cv.Release(np.array([[4, 12]]), m.Suppression(10), False, source="s").save("r.npz")
    said = fails("fit", "topics", "r.npz", "-o", "f.nc", *SHORT)
    assert "r.npz must hold reports that its mechanism can have made" in said
