import numpy as np
import pytest
import scipy.sparse as sp
from scipy.io import mmwrite

import countveil as cv
from countveil.data.reports import observations_of
from tests.commands import SHORT, fails, run
from tests.data.same import assert_same

pytestmark = pytest.mark.long

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
    assert "made without the release" not in page
    assert "Wrote" in run("compare", "r.npz", "--topics", "1,2", "--folds", "2", "-o", "c.csv", *SHORT[2:]).stdout

    same = cv.TopicModel(2, draws=8, tune=4, chains=2, seed=1, threads=1, progress=False)
    same.fit(cv.Reports(published(), m.Suppression(10)))
    np.testing.assert_array_equal(same.components_, cv.TopicModel.load("f.nc").components_)


def test_names_in_a_table_reach_the_tables_of_a_fit(here):
    run("import", "wide.csv", "-o", "w.npz", *HIDDEN)
    run("fit", "topics", "w.npz", "-o", "w.nc", *SHORT)
    run("counts", "w.nc", "--release", "w.npz", "-o", "w.csv")
    assert (here / "w.csv").read_text().startswith("county,word,report")
    cells = [f"{i % 3},{'abcd'[j]},{i // 3},{words(value)}" for (i, j), value in np.ndenumerate(COUNTS)]
    (here / "cube.csv").write_text("\n".join(["Age group,sex,year,deaths", *cells]))
    run("import", "cube.csv", "-o", "c.npz", "--long", "Age group,sex,year", "--value", "deaths", *HIDDEN)
    run("fit", "tensor", "c.npz", "-o", "c.nc", "--components", "1", *SHORT[2:])
    assert list(cv.load("c.nc")._reader.axes) == ["Age_group", "sex", "year"]
    run("counts", "c.nc", "--release", "c.npz", "-o", "c.csv")
    assert (here / "c.csv").read_text().startswith("Age group,sex,year,report")


def test_a_level_states_geometric_noise(here):
    (here / "noisy.csv").write_text("r,a,b\nx,3,-1\ny,0,12\n")
    run("import", "noisy.csv", "-o", "n.npz", "--epsilon", "0.5", "--precision", "2")
    assert cv.Release.load("n.npz").mechanism == m.TwoSidedGeometric.keeping("0.5", 2)


def as_bag_of_words(path, reports):
    cells = reports.tocoo()
    lines = [f"{i + 1} {j + 1} {value}" for i, j, value in zip(*cells.coords, cells.data, strict=True)]
    path.write_text("\n".join([*map(str, reports.shape), str(reports.nnz), *lines]) + "\n")


SPARSE = {"t.mtx": mmwrite, "t.npz": sp.save_npz, "t.txt": as_bag_of_words}


def test_a_bound_that_is_not_stated_is_found_and_printed(here):
    said = run(
        "import", "wide.csv", "-o", "r.npz", "--mechanism", "suppression", "--absent", "Suppressed", *SOURCE
    ).stdout
    least = COUNTS[COUNTS >= 10].min()
    assert f"they are below {least}, the smallest positive count that is shown" in said
    assert cv.Release.load("r.npz").mechanism == m.Suppression(int(least))
    assert "No bound" not in run("import", "wide.csv", "-o", "s.npz", *HIDDEN).stdout
    for table in ("a,b,c\n<10,<5,<7\n<3,<7,<5\n", "a,b,c\n<10,12,0\n14,<10,31\n"):  # the ranges are stated
        (here / "ranges.csv").write_text(table)
        said = run("import", "ranges.csv", "-o", "t.npz", "--mechanism", "suppression", "--force", *SOURCE)
        assert "ound of hidden counts" not in said.stdout + said.stderr
    assert "Interval" not in repr(cv.Release.load("t.npz").mechanism)  # "<10" is 1 to 9: zeros are shown


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_files_are_imported(here, name):
    truncated = sparse_imported(here, name)
    found = cv.Release.load("r.npz").reports
    assert sp.issparse(found)
    np.testing.assert_array_equal(found.toarray(), truncated)


def sparse_imported(here, name):
    """The reports of r.npz, which was imported from a file."""
    reports = cv.simulate_reports(COUNTS, m.TwoSidedGeometric(0.37), np.random.default_rng(2))
    truncated = np.maximum(reports, 0)
    SPARSE[name](here / name, sp.csr_array(truncated))
    run("import", name, "-o", "r.npz", "--alpha", "0.37", *SOURCE)
    return truncated


def test_sparse_releases_are_fitted_shown_compared_and_reported(here):
    truncated = sparse_imported(here, "t.npz")
    run("fit", "topics", "r.npz", "-o", "f.nc", *SHORT)
    assert "Expected sum of counts" in run("show", "f.nc").stdout
    run("compare", "r.npz", "--topics", "1,2", "--folds", "2", "-o", "c.csv", *SHORT[2:])
    run("report", "f.nc", "-o", "f.html", "--release", "r.npz")
    same = cv.TopicModel(2, draws=8, tune=4, chains=2, seed=1, threads=1, progress=False)
    same.fit(cv.PrivatizedCounts(truncated, 0.37))
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
        *("import", "long.csv", "-o", "s.npz", "--long", "county,age", "--value", "deaths", "--no-header", *HIDDEN)
    )


def test_missing_rows_of_a_long_table_have_to_be_explained(here):
    (here / "few.csv").write_text("place,age,n\na,x,12\na,y,3\nb,y,6\n")
    given = ("--mechanism", "random-rounding", "--base", "3", *SOURCE)
    long = ("import", "few.csv", "-o", "r.npz", "--long", "place,age", "--value", "n", *given)
    assert "got 1 cells without one: background=0 (--background 0)" in fails(*long)
    run(*long, "--background", "0")
    np.testing.assert_array_equal(cv.Release.load("r.npz").reports, [[12, 3], [0, 6]])
    assert "--background must come with --long" in fails(
        "import", "few.csv", "-o", "s.npz", "--background", "0", *given
    )


def test_a_column_of_numeric_ids_is_not_imported_without_a_word(here):
    rows = [f"{1000 + 7 * i},{4 + i % 3},{7 * (i % 4)}" for i in range(12)]
    (here / "ids.csv").write_text("\n".join(["kanton,a,b", *rows]))
    made = ("import", "ids.csv", "--mechanism", "top-coding", "--above", "100000", *SOURCE)
    assert "state --row-labels kanton" in " ".join(fails(*made, "-o", "r.npz").split())
    (here / "short.csv").write_text("\n".join(["first,a,b", *(f"{10 + 7 * i}{row[4:]}" for i, row in enumerate(rows))]))
    said = " ".join(run(made[0], "short.csv", *made[2:], "-o", "r.npz").stderr.split())
    assert "warning: the first column increases from row to row, as an index does" in said
    assert "name its column with --row-labels" in said
    assert "warning" not in run(*made, "-o", "s.npz", "--row-labels", "kanton").stderr
    assert cv.Release.load("s.npz").row_labels[1] == "1007"
    (here / "ids.csv").write_text((here / "short.csv").read_text().replace("first", "Unnamed: 0"))
    assert "must not include the index" in " ".join(fails(*made, "-o", "t.npz").split())


def test_two_sided_geometric_noise_needs_its_alpha_alone(here):
    reports = cv.simulate_reports(COUNTS, m.TwoSidedGeometric(0.37), np.random.default_rng(2))
    np.savetxt("n.csv", reports, fmt="%d", delimiter=",")
    made = ("import", "n.csv", "--alpha", "0.37", "--no-header", *SOURCE)
    assert "SIMULATED research noise" in run(*made, "--simulated", "-o", "s.npz").stdout
    assert "This release is simulated" in run("fit", "topics", "s.npz", "-o", "s.nc", *SHORT).stdout
    assert "SIMULATED" not in run(*made, "-o", "r.npz").stdout
    assert_same(observations_of(cv.Release.load("r.npz")), cv.Reports(reports, m.TwoSidedGeometric(0.37)))


def test_what_is_wrong_is_said_in_one_line_and_nothing_is_written(here):
    assert "got 'Suppressed' in row" in fails("import", "wide.csv", "-o", "r.npz", *HIDDEN[:4], *SOURCE)
    (here / "low.csv").write_text("county,a\nx,4\n")
    assert "reports must be 0, at least 10" in fails("import", "low.csv", "-o", "r.npz", *HIDDEN)
    assert "source must be" in fails("import", "wide.csv", "-o", "r.npz", *HIDDEN[:-1], "")
    assert not (here / "r.npz").exists()


def test_other_commands_point_here(here):
    assert "`countveil import` makes a release" in fails("fit", "topics", "wide.csv", "-o", "f.nc")
    assert "`countveil import`" in fails("privatize", "wide.csv", "-o", "r.npz", "--epsilon", "1", "--precision", "2")


def test_impossible_reports_in_a_release_are_refused_by_name(here):
    cv.Release(np.array([[4, 12]]), m.Suppression(10), False, source="s").save("r.npz")
    said = fails("fit", "topics", "r.npz", "-o", "f.nc", *SHORT)
    assert "r.npz must hold reports that its mechanism can produce" in said


def with_margins(folder):
    """The wide table with a row and a column of totals, and these in files of their own."""
    rows, columns = COUNTS.sum(axis=1), COUNTS.sum(axis=0)
    lines = [f"county{i}," + ",".join(map(words, row)) + f",{rows[i]}" for i, row in enumerate(COUNTS)]
    last = "Total," + ",".join(map(str, columns)) + f",{COUNTS.sum()}"
    (folder / "margins.csv").write_text("\n".join(["county,a,b,c,d,All", *lines, last]))
    (folder / "rows.csv").write_text("\n".join(["county,deaths", *(f"county{i},{n}" for i, n in enumerate(rows))]))
    (folder / "ages.csv").write_text("\n".join(["age,deaths", *(f"{'abcd'[j]},{n}" for j, n in enumerate(columns))]))


def test_a_table_with_totals_is_imported_fitted_compared_shown_and_reported(here):
    with_margins(here)
    both = ("--total-row", "Total", "--total-column", "All")
    said = run("import", "margins.csv", "-o", "r.npz", *both, "--totals-of", "rows", *HIDDEN).stdout
    assert "Totals were published alongside them: 12 exact totals, sums over axis 1." in said
    release = cv.Release.load("r.npz")
    np.testing.assert_array_equal(release.reports, published())
    assert release.extras.totals[0][:2] == ((1,), tuple(COUNTS.sum(axis=1).tolist()))
    run("import", "wide.csv", "-o", "s.npz", "--totals", "rows.csv", "--totals-of", "rows", *HIDDEN)
    assert (here / "s.npz").read_bytes() == (here / "r.npz").read_bytes()

    run("fit", "topics", "r.npz", "-o", "f.nc", *SHORT)
    assert "12 exact totals, all met." in run("show", "f.nc").stdout
    run("report", "f.nc", "-o", "f.html", "--release", "r.npz")
    assert "12, all met" in (here / "f.html").read_text()
    said = run("compare", "r.npz", "--topics", "1,2", "--folds", "2", *SHORT[2:]).stdout
    assert "Compared without the totals of the release" in said


def test_totals_of_a_long_table_are_in_a_file_of_their_own(here):
    with_margins(here)
    run("import", "long.csv", "-o", "r.npz", "--long", "county,age", "--value", "deaths", "--totals",
        "ages.csv", *HIDDEN)  # fmt: skip
    assert cv.Release.load("r.npz").extras.totals[0][:2] == ((0,), tuple(COUNTS.sum(axis=0).tolist()))


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (("--total-row", "Total", "--total-column", "All"), "states whose totals are kept"),
        (("--totals", "rows.csv"), "--totals must come with --totals-of"),
        (("--totals-of", "rows"), "--totals-of must come with"),
        (("--totals-of", "all"), "--totals-of must be rows, columns, both, table, or a file of groups, got 'all'"),
        (("--totals", "rows.csv", "--total-row", "Total"), "take totals from one place"),
        (("--totals", "ages.csv", "--totals-of", "rows"), "must use labels of the table's 'rows', got 'a'"),
        (("--long", "county,age", "--value", "deaths", "--total-row", "Total"), "--long must come without"),
    ],
)
def test_totals_that_do_not_go_together_are_refused(here, options, rule):
    with_margins(here)
    assert rule in fails(
        "import", "wide.csv" if "ages.csv" in options else "margins.csv", "-o", "r.npz", *options, *HIDDEN
    )


def test_a_table_with_missing_cells_and_two_mechanisms_is_imported_fitted_compared_and_reported(here):
    rng = np.random.default_rng(6)
    after = cv.simulate_reports(COUNTS, m.RandomRounding(3), rng)
    lines = [
        f"county{i:02d},{'abcd'[j]},{words(n) if j < 2 else 'n/a' if i == 4 else after[i, j]},{2020 + j}"
        for (i, j), n in np.ndenumerate(COUNTS)
        if (i, j) != (7, 3)
    ]
    (here / "two.csv").write_text("\n".join(["county,age,deaths,year", *lines]))
    (here / "m.csv").write_text("age,mechanism,below,base\na,suppression,10,\nb,suppression,10,\n"
                                "c,random-rounding,,3\nd,random-rounding,,3\n")  # fmt: skip
    given = ("--long", "county,age", "--value", "deaths", "--mechanisms", "m.csv", "--absent", "Suppressed")
    given = (*given, "--missing", "n/a", *SOURCE)
    assert "got 1 cells without one" in fails("import", "two.csv", "-o", "r.npz", *given)
    said = run("import", "two.csv", "-o", "r.npz", *given, "--background", "missing").stdout
    assert "3 cells were never reported" in said
    release = cv.Release.load("r.npz")
    assert np.argwhere(release.extras.mask).tolist() == [[4, 2], [4, 3], [7, 3]]
    stated = np.array([[m.Suppression(10)] * 2 + [m.RandomRounding(3)] * 2], dtype=object)
    values = np.concatenate([published()[:, :2], after[:, 2:]], axis=1)
    assert_same(observations_of(release), cv.Reports(values, stated, release.extras.mask))

    run("fit", "topics", "r.npz", "-o", "f.nc", *SHORT)
    run("report", "f.nc", "-o", "f.html", "--release", "r.npz")
    assert "made without the release" not in (here / "f.html").read_text()
    assert "Wrote" in run("compare", "r.npz", "--topics", "1,2", "--folds", "2", "-o", "c.csv", *SHORT[2:]).stdout

    ranges = "year from,year to,mechanism,below,base\n,2021,suppression,10,\n2022,,random-rounding,,3\n"
    (here / "m.csv").write_text(ranges)
    run("import", "two.csv", "-o", "s.npz", *given, "--background", "missing")
    assert_same(observations_of(cv.Release.load("s.npz")), observations_of(release))
    wide = ("import", "wide.csv", "-o", "t.npz", *SOURCE)
    for options, rule in (
        (("--mechanisms", "m.csv", "--alpha", "0.5", "--long", "a,b", "--value", "c"), "without --mechanism"),
        (("--mechanisms", "m.csv", "--absent", "Suppressed"), "by rows or by columns for a wide table, got 'year'"),
        (("--long", "county,age", "--value", "deaths", "--background", "none", *HIDDEN[:-2]), "a number or missing"),
    ):
        assert rule in fails(*wide, *options)


def test_a_wide_table_with_missing_cells(here):
    text = (here / "wide.csv").read_text().splitlines()
    cells = text[3].split(",")
    (here / "wide.csv").write_text("\n".join([*text[:3], ",".join([cells[0], "n/a", *cells[2:]]), *text[4:]]))
    run("import", "wide.csv", "-o", "r.npz", *HIDDEN, "--missing", "n/a")
    release = cv.Release.load("r.npz")
    assert np.argwhere(release.extras.mask).tolist() == [[2, 0]]
    np.testing.assert_array_equal(release.reports[~release.extras.mask], published()[~release.extras.mask])


def test_mechanisms_of_a_wide_table_go_by_rows_or_columns(here):
    given = ("import", "wide.csv", "-o", "r.npz", "--absent", "Suppressed", "--force", *SOURCE)
    (here / "m.csv").write_text("columns,mechanism,below,base\n" + "".join(
        f"{name},suppression,{10 - place},\n" for place, name in enumerate("abcd")
    ))  # fmt: skip
    run(*given, "--mechanisms", "m.csv")
    stated = np.array([[m.Suppression(10 - place) for place in range(4)]], dtype=object)
    assert_same(observations_of(cv.Release.load("r.npz")), cv.Reports(published(), stated))
    (here / "m.csv").write_text("rows from,rows to,mechanism,below\n,county3,suppression,10\ncounty4,,suppression,9\n")
    (here / "wide.csv").write_text((here / "wide.csv").read_text().replace("county10", "county8a"))
    said = fails(*given, "--mechanisms", "m.csv")
    assert "texts of one form" in said
    (here / "m.csv").write_text("rows,mechanism,below\ncounty0,suppression,10\n")
    assert "one mechanism for every 'rows', got 0 for 'county1'" in fails(*given, "--mechanisms", "m.csv")
    np.savetxt("n.csv", COUNTS, fmt="%d", delimiter=",")
    assert "must have labels of rows" in fails(
        "import", "n.csv", "-o", "s.npz", "--no-header", "--mechanisms", "m.csv", *SOURCE
    )


POPULATION = RNG.integers(100, 50_000, COUNTS.shape)


@pytest.fixture
def with_population(here):
    """The same tables, and the population of every cell beside them."""
    lines = [f"county{i}," + ",".join(map(str, row)) for i, row in enumerate(POPULATION)]
    (here / "population.csv").write_text("\n".join(["county,a,b,c,d", *lines]))
    cells = [f"county{i:02d},{'abcd'[j]},{words(value)},{POPULATION[i, j]}" for (i, j), value in np.ndenumerate(COUNTS)]
    (here / "long.csv").write_text("\n".join(["county,age,deaths,population", *cells]))
    return here


def test_the_exposure_of_every_cell_goes_with_its_release(with_population):
    said = run("import", "wide.csv", "-o", "w.npz", "--exposure", "population.csv", *HIDDEN).stdout
    assert "Expected counts are proportional to a known exposure" in said
    long = "--long", "county,age", "--value", "deaths", "--exposure", "population"
    run("import", "long.csv", "-o", "l.npz", *long, *HIDDEN)
    for path in ("w.npz", "l.npz"):
        np.testing.assert_array_equal(cv.Reports.from_release(cv.Release.load(path)).exposure, POPULATION)
    run("fit", "topics", "w.npz", "-o", "f.nc", "--likelihood", "poisson", *SHORT)
    fit = cv.TopicModel.load("f.nc")
    np.testing.assert_array_equal(fit._reader.exposure_matrix, POPULATION)
    run("report", "f.nc", "-o", "f.html", "--release", "w.npz")
    asked = "--likelihood", "poisson", "--folds", "2", "-o", "c.csv"
    run("compare", "w.npz", "--topics", "1,2", *asked, *SHORT[2:])
    said = run("fit", "topics", "w.npz", "-o", "g.nc", "--method", "svi", status=1).stderr
    assert "exposure must be one of rows (D, 1) or of columns (1, V) for method 'svi'" in said


def test_exposures_of_other_cells_are_refused(with_population):
    lines = (with_population / "population.csv").read_text().split("\n")
    (with_population / "turned.csv").write_text("\n".join([lines[0], lines[2], lines[1], *lines[3:]]))
    said = fails("import", "wide.csv", "-o", "w.npz", "--exposure", "turned.csv", *HIDDEN)
    assert "turned.csv must have the row labels of the table in their order, got 'county1' for 'county0'" in said
    (with_population / "short.csv").write_text("\n".join(lines[:-1]))
    said = fails("import", "wide.csv", "-o", "w.npz", "--exposure", "short.csv", *HIDDEN)
    assert "must have the shape of the table (12, 4), got (11, 4)" in said
    long = "--long", "county,age", "--value", "deaths"
    said = fails("import", "long.csv", "-o", "l.npz", *long, "--exposure", "people", *HIDDEN)
    assert "must have one column 'people'" in said
    cells = (with_population / "long.csv").read_text().split("\n")
    (with_population / "fewer.csv").write_text("\n".join(cells[:-1]))
    said = fails("import", "fewer.csv", "-o", "l.npz", *long, "--exposure", "population", *HIDDEN)
    assert "frame must have a row for every cell, since each has an exposure, got 1 cells" in said
    cells[3] = cells[3].rsplit(",", 1)[0] + ",many"
    (with_population / "odd.csv").write_text("\n".join(cells))
    said = fails("import", "odd.csv", "-o", "l.npz", *long, "--exposure", "population", *HIDDEN)
    assert "exposure must be numbers in column 'population', got 'many'" in said
