"""Tables as statistical offices publish them: each is read right, or refused with a remedy that then works."""

import json
import shlex
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from tests.commands import fails, run

m = cv.mechanisms
TABLES = Path(__file__).parents[1] / "tables"
NAN = np.nan
SUPPRESSION = ("--mechanism", "suppression", "--below", "10")
ROUNDING = ("--mechanism", "random-rounding", "--base", "3")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder for releases."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def imported(name, *options):
    """(the release of a table, what the command printed)."""
    return run_import(TABLES / name, *options)


def run_import(path, *options):
    found = run("import", path, "-o", "r.npz", "--force", *options)
    return cv.Release.load("r.npz"), found.output


def refused(name, *options):
    return fails("import", TABLES / name, "-o", "other.npz", *options)


def mechanism_of(release, *cell):
    stated = release.mechanism
    return stated.mechanisms[np.reshape(stated.of_cell, stated.shape)[cell]]


def test_bands_are_the_intervals_that_they_are(here):
    release, said = imported("bands/miovd.csv")
    np.testing.assert_array_equal(
        release.reports, [[NAN, NAN, NAN], [0, NAN, 62], [NAN, NAN, NAN], [NAN, NAN, 118], [0, 0, NAN], [71, NAN, 240]]
    )
    assert mechanism_of(release, 0, 0) == m.Interval(1, 9)
    assert mechanism_of(release, 0, 1) == m.Interval(10, 50)
    assert "18 cells: 7 counts, 11 in intervals (6 '1-9', 5 '10-50'), 0 hidden, 0 masked, 0 in totals." in said
    assert release.source == "miovd.csv"


WONDER = ("wonder-txt/w.txt", *SUPPRESSION, "--absent", "Suppressed")
WONDER_LONG = (*WONDER, "--long", "County,Ten-Year Age Groups", "--value", "Deaths")


def test_wonder_has_its_totals_as_known_totals(here):
    assert "--totals-in-table use" in refused(*WONDER_LONG)
    release, said = imported(*WONDER_LONG, "--totals-in-table", "use")
    assert release.shape == (12, 4)
    assert release.labels[1] == tuple(f"{a}-{a + 9} years" for a in range(35, 75, 10))
    np.testing.assert_array_equal(release.reports[1], [44, 0, 0, NAN])
    assert release.extras.totals[0][:2] == ((1,), (24, 52, 47, 41, *release.extras.totals[0][1][4:]))
    assert "60 cells: 23 counts, 25 hidden (25 'Suppressed'), 0 masked, 12 in totals." in said
    assert "5 lines below the table left out" in said
    dropped, _ = imported(*WONDER_LONG, "--totals-in-table", "drop")
    np.testing.assert_array_equal(dropped.reports, release.reports)
    assert dropped.extras.totals is None
    assert "state --long 'County,Ten-Year Age Groups' --value Deaths" in refused(*WONDER)


def test_eurostat_hides_what_is_confidential_and_masks_what_is_not_available(here):
    table = ("eurostat-tsv/hlth.tsv", *SUPPRESSION)
    assert "--long 'freq,icd10,age,unit,geo,TIME_PERIOD' --value OBS_VALUE" in refused(*table)
    table += ("--long", "age,geo,TIME_PERIOD", "--value", "OBS_VALUE")
    assert "'age' 'TOTAL'" in refused(*table)
    release, said = imported(*table, "--totals-in-table", "drop")
    assert release.labels == (("Y15-24", "Y25-44"), ("AT", "LU"), ("2019", "2020", "2021"))
    expected = [[[12, NAN, 14], [NAN, NAN, NAN]], [[103, 111, NAN], [20, 22, 0]]]
    np.testing.assert_array_equal(release.reports, expected)
    assert release.extras.mask is None
    assert "7 counts, 5 hidden (5 'c'), 0 masked, 6 in totals; flags left out: 3 'b', 2 'p', 1 'e'." in said
    release, said = imported(*table, "--totals-in-table", "none")
    assert release.extras.mask.sum() == 1
    assert release.extras.mask[0, 0, 2]  # ":" in the first row


def test_sdmx_hides_what_is_confidential_and_masks_what_is_not_available(here):
    release, said = imported(
        "eurostat-tsv/sdmx.csv", *SUPPRESSION, "--long", "age,geo,TIME_PERIOD", "--value", "OBS_VALUE"
    )
    expected = [[[12, NAN], [NAN, NAN]], [[103, 0], [20, 22]]]
    np.testing.assert_array_equal(release.reports, expected)
    assert np.argwhere(release.extras.mask).tolist() == [[1, 0, 1]]
    assert "4 counts, 3 hidden (3 'C'), 1 masked (1 ':'), 0 in totals; flags left out: 1 'b', 1 'e'." in said


DESTATIS = [f"destatis-semicolon/{name}" for name in (
    "gs.csv", "gs_utf8.csv", "clean_latin1.csv", "clean_semicolon.csv", "clean_tab.tsv", "utf16.tsv"
)]  # fmt: skip


@pytest.mark.parametrize("name", DESTATIS)
def test_destatis(here, name):
    stated = (*("--mechanism", "suppression", "--below", "3"), *("--absent", "x", "--missing", ".", "--zero", "-"))
    assert "state --thousands . if it is 1021" in refused(name, *stated)
    release, said = imported(name, *stated, "--thousands", ".")
    np.testing.assert_array_equal(release.reports, [[1021, 12, 0, 0], [2345, 0, 17, NAN], [1204, 31, 0, 5]])
    assert np.argwhere(release.extras.mask).tolist() == [[0, 2], [2, 2]]
    assert "12 cells: 9 counts, 1 hidden (1 'x'), 2 masked (2 '.'), 0 in totals." in said
    rows, columns = release.labels
    assert "Lübeck" in rows[2]
    sexes = ("männlich | ", "weiblich | ") if "gs" in name else ("m ", "w ")
    assert columns == tuple(f"{sex}{year}" for sex in sexes for year in (2021, 2022))
    if "gs" in name:
        assert rows[1] == "01002 Kiel, kreisfreie Stadt"
        assert "2 header rows, 2 lines above the table left out, 2 lines below the table left out" in said


def test_numbers_that_may_be_thousands_or_decimals(here):
    table = ("destatis-semicolon/thousands.tsv", "--mechanism", "rounding", "--base", "1000")
    assert "'12.000' may be thousands or decimals" in refused(*table)
    assert imported(*table, "--thousands", ".")[0].reports[:, 0].tolist() == [12000, 20000, 18000]
    gaussian = ("destatis-semicolon/thousands.tsv", "--mechanism", "gaussian", "--sigma", "5")
    assert imported(*gaussian, "--decimal", ".")[0].reports[:, 0].tolist() == [12, 20, 18]


CROSSTAB = np.loadtxt(TABLES / "margins/crosstab.csv", delimiter=",", skiprows=1, usecols=range(1, 5), max_rows=6)
EXACT = ("--mechanism", "interval", "--lower", "0", "--upper", "inf")
OF_LONG = ("--long", "town,kind", "--value", "n")


@pytest.mark.parametrize(
    ("name", "options"), [("margins/crosstab.csv", EXACT), ("margins/long.csv", (*EXACT, *OF_LONG))]
)
def test_totals_are_used_or_dropped_and_never_counted(here, name, options):
    assert "totals among its counts" in refused(name, *options)
    dropped, said = imported(name, *options, "--totals-in-table", "drop")
    np.testing.assert_array_equal(dropped.reports, CROSSTAB)
    assert dropped.reports.sum() == 600
    assert "35 cells: 24 counts, 0 hidden, 0 masked, 11 in totals." in said
    used, _ = imported(name, *options, "--totals-in-table", "use")
    np.testing.assert_array_equal(used.reports, CROSSTAB)
    assert {each.over for each in used.extras.totals} >= {(0,), (1,)}
    assert imported(name, *options, "--totals-in-table", "none")[0].shape == (7, 5)


def test_rounded_totals_are_not_taken_for_exact_ones(here):
    table = ("margins/rr3.csv", *ROUNDING)
    assert "use with --totals-mechanism exact, or" in refused(*table)
    assert "must come with --totals-mechanism" in refused(*table, "--totals-in-table", "use")
    release, _ = imported(*table, "--totals-in-table", "use", "--totals-mechanism", "random-rounding --base 3")
    assert {each.mechanism for each in release.extras.totals} == {m.RandomRounding(3)}
    assert release.reports.sum() == 591


def test_totals_beside_hidden_counts(here):
    release, _ = imported("margins/supp.csv", *SUPPRESSION, "--totals-in-table", "use")
    assert np.isnan(release.reports).sum() == 3
    assert release.mechanism == m.Suppression(10)  # "<10" is what it hides
    assert imported("margins/supp.csv", "--totals-in-table", "use")[0].mechanism == m.Interval(0, 9)


@pytest.mark.parametrize(("name", "word"), [("hes", "*"), ("opensafely", "[REDACTED]")])
def test_rounding_that_is_not_stated_is_warned_of(here, name, word):
    stated = ("--mechanism", "suppression", "--below", "8", "--absent", word)
    release, said = imported(f"suppress-then-round/{name}.csv", *stated)
    assert np.isnan(release.reports).sum() == 123
    assert "warning: all positive numbers are multiples of 5" in said
    _, said = imported("suppress-then-round/midpoint6.csv", "--mechanism", "rounding", "--base", "3")
    assert "warning: all positive numbers are 3 above multiples of 6" in said
    for table, rule in (
        (f"suppress-then-round/{name}.csv", "suppression --below 8 then rounding --base 5"),
        ("suppress-then-round/midpoint6.csv", "rounding-midpoint --base 6"),
    ):
        command = json.loads(run("look", TABLES / table, "--json").stdout)["command"]
        assert rule in command.replace("'", "")
        assert "warning" not in run(*shlex.split(command)[1:]).output


@pytest.mark.parametrize(("name", "empty"), [("xblank", "empty"), ("xna", "'N/A'")])
def test_blanks_next_to_a_word_are_masked(here, name, empty):
    release, said = imported(
        f"hidden-as-zero/{name}.csv", "--mechanism", "suppression", "--below", "5", "--absent", "X"
    )
    assert (np.isnan(release.reports).sum(), release.extras.mask.sum()) == (81, 24)
    assert f"215 counts, 81 hidden (81 'X'), 24 masked (24 {empty}), 0 in totals" in said


@pytest.mark.parametrize("name", ["twohead", "twohead_merged"])
def test_two_header_rows(here, name):
    release, _ = imported(f"time-order/{name}.csv", *ROUNDING)
    assert release.labels == (("North", "South"), ("Male | 2019", "Male | 2020", "Female | 2019", "Female | 2020"))
    np.testing.assert_array_equal(release.reports, [[12, 15, 18, 21], [3, 6, 9, 12]])
    one, _ = imported("time-order/sub.csv", "--mechanism", "gaussian", "--sigma", "9", "--header-rows", "1")
    assert one.shape == (3, 2)
    two, _ = imported("time-order/sub.csv", *ROUNDING)
    assert two.labels[1] == ("m19 | 2019", "m20 | 2020")


TIMES = ("ddmmyyyy", "gaps", "iso", "isoweek", "mdy", "monyear")


@pytest.mark.parametrize("name", TIMES)
def test_times_name_rows(here, name):
    wide, _ = imported(f"time-order/wide_{name}.csv", *ROUNDING)
    long, _ = imported(f"time-order/long_{name}.csv", *ROUNDING, "--long", "when,where", "--value", "n")
    assert wide.labels[1] == long.labels[1] == tuple("abcde")
    assert set(wide.labels[0]) == set(long.labels[0])
    order = [long.labels[0].index(label) for label in wide.labels[0]]
    np.testing.assert_array_equal(wide.reports, long.reports[order])


EVERY = sorted(path.relative_to(TABLES).as_posix() for path in TABLES.glob("*/*"))


@pytest.mark.parametrize("name", EVERY)
def test_what_look_suggests_works_when_pasted(here, name):
    found = json.loads(run("look", TABLES / name, "--json").stdout)
    command = shlex.split(found["command"])
    assert command[:2] == ["countveil", "import"]
    run(*command[1:])
    assert found["cells"] == found["numbers"] + sum(found["words"].values())


def test_there_is_a_test_for_every_table():
    text = Path(__file__).read_text(encoding="utf-8")
    for name in EVERY:
        stem = Path(name).stem
        known = stem in text or (name.split("/")[0] == "time-order" and stem.partition("_")[2] in TIMES)
        assert known or stem in ("years_across", "zeros"), name


def test_a_column_of_statuses_says_why_a_number_is_missing(here):
    """As Statistics Canada publishes tables: codes of places and series beside their names."""
    lines = ["REF_DATE,GEO,DGUID,Cause,UOM,VECTOR,COORDINATE,VALUE,STATUS,SYMBOL"]
    values = iter(["12", "", "0", "30", "", "11", "25", "14", "0", "17", "", "40"])
    statuses = {1: "x", 4: "..", 6: "E", 10: "x"}
    for number, (year, place, cause) in enumerate(product((2020, 2021), ("Ada", "Bo", "Cy"), "de")):
        code = f"v{10 * 'ABC'.index(place[0]) + 'de'.index(cause)}"
        lines.append(f"{year},{place},0{place[0]},{cause},Number,{code},{code}.1,{next(values)},"
                     f"{statuses.get(number, '')},")  # fmt: skip
    (here / "t.csv").write_text("\n".join(lines))
    stated = ("--long", "REF_DATE,GEO,Cause", "--value", "VALUE", *SUPPRESSION, "--absent", "x", "--missing", "..")
    release, said = run_import(here / "t.csv", *stated, "--status", "STATUS")
    expected = [[[12, NAN], [0, 30], [0, 11]], [[25, 14], [0, 17], [NAN, 40]]]
    np.testing.assert_array_equal(release.reports, expected)
    assert np.argwhere(release.extras.mask).tolist() == [[0, 2, 0]]
    assert "2 hidden (2 'x'), 1 masked (1 '..'), 0 in totals; flags left out: 1 'E'." in said
    found = json.loads(run("look", "t.csv", "--json").stdout)
    assert list(found["axes"]) == ["REF_DATE", "GEO", "Cause"]
    run(*shlex.split(found["command"])[1:])
    np.testing.assert_array_equal(cv.Release.load("t.npz").reports, expected)


def test_words_beside_zeros_are_warned_of(here):
    """As the Bureau of Labor Statistics publishes what it does not disclose."""
    Path("t.csv").write_text("area,sex,jobs,code\nA,M,12,\nA,F,0,N\nB,M,0,N\nB,F,34,\n")
    long = ("--long", "area,sex", "--value", "jobs", "--mechanism", "suppression", "--below", "5")
    assert "warning: 'code' has 'N' only next to zeros: are these counts hidden" in run_import("t.csv", *long)[1]
    release, said = run_import("t.csv", *long, "--status", "code", "--absent", "N")
    assert "next to zeros" not in said
    np.testing.assert_array_equal(release.reports, [[NAN, 12], [34, NAN]])
    for other in ("A,F,0,N\nB,M,0,", "A,F,1,N\nB,M,0,N", "A,F,0,7\nB,M,0,7"):
        Path("t.csv").write_text(f"area,sex,jobs,code\nA,M,12,\n{other}\nB,F,34,\n")
        assert "next to zeros" not in run_import("t.csv", *long[:4], *EXACT)[1]


def test_other_files_hold_the_same_table(here):
    """A workbook and a .parquet of hidden-as-zero/xblank.csv."""
    frame = pd.read_csv(TABLES / "hidden-as-zero/xblank.csv", index_col=0)
    stated = ("--mechanism", "suppression", "--below", "5", "--absent", "X")
    expected, _ = imported("hidden-as-zero/xblank.csv", *stated)
    frame.to_excel(here / "t.xlsx")
    frame.reset_index(names="place").astype("string").to_parquet(here / "t.parquet")
    for name in ("t.xlsx", "t.parquet"):
        release, _ = run_import(here / name, *stated)
        np.testing.assert_array_equal(release.reports, expected.reports)
        np.testing.assert_array_equal(release.extras.mask, expected.extras.mask)
        assert release.labels == expected.labels


def test_an_owner_is_refused_without_a_count(here):
    (here / "c.csv").write_text((TABLES / "margins/crosstab.csv").read_text())
    said = fails("privatize", "c.csv", "-o", "r.npz", "--epsilon", "1", "--precision", "1")
    assert "must hold no totals, got row 'All', column 'All'" in said
    assert not any(str(n) in said for n in (100, 600, 233, 39))
    renamed = (TABLES / "margins/crosstab.csv").read_text().replace("All", "City")
    (here / "c.csv").write_text(renamed)
    said = fails("privatize", "c.csv", "-o", "r.npz", "--epsilon", "1", "--precision", "1")
    assert "row 'City' (the sum of the others)" in said


def test_subtotals_are_dropped_and_no_totals_of_all(here):
    Path("t.csv").write_text("r,a,b\nN1,10,13\nN2,12,27\nNorth,22,40\nS1,5,6\nS2,30,8\nSouth,35,14\nAll,57,54\n")
    table = ("t.csv", "-o", "r.npz", *EXACT)
    assert "'North' (the sum of 2 others), row 'South' (the sum of 2 others), row 'All'" in fails("import", *table)
    assert "needs totals of all other cells, got 'North'" in fails("import", *table, "--totals-in-table", "use")
    release, _ = run_import("t.csv", *EXACT, "--totals-in-table", "drop")
    assert release.labels[0] == ("N1", "N2", "S1", "S2")


def test_a_word_of_totals_that_names_nothing_is_warned_of(here):
    Path("t.csv").write_text("r,a,b\nA,10,13\nB,12,27\n")
    found = run("import", "t.csv", "-o", "r.npz", *EXACT, "--total", "Insgsamt")
    assert "warning: no label is 'Insgsamt', which --total names" in found.output


def test_cells_without_a_row_are_asked_for_where_zeros_are_left_out(here):
    (here / "t.csv").write_text("area,age,count\nA,x,12\nA,y,16\nB,x,19\nC,y,18\n")
    stated = ("--long", "area,age", "--value", "count")
    wonder = (*stated, "--mechanism", "cdc-wonder")
    asked = fails("import", "t.csv", "-o", "t.npz", *wonder)
    assert "--background must say what 2 cells without a row are" in asked
    release, line = run_import(here / "t.csv", *wonder, "--background", "0")
    assert "0 in totals; 2 cells without a row (0)." in line
    np.testing.assert_array_equal(release.reports, [[12, 16], [19, 0], [0, 18]])
    release, line = run_import(here / "t.csv", *wonder, "--background", "missing")
    assert "0 in totals; 2 cells without a row (masked)." in line
    assert np.argwhere(release.extras.mask).tolist() == [[1, 1], [2, 0]]
    release, line = run_import(here / "t.csv", *stated, "--mechanism", "suppression --below 10")
    assert "0 in totals; 2 cells without a row (hidden)." in line
    np.testing.assert_array_equal(release.reports, [[12, 16], [19, NAN], [NAN, 18]])


def test_exposures_are_in_the_stated_format(here):
    (here / "t.csv").write_text("area;age;population;deaths;s\nA;x;10.000;1.005;1.500\nA;y;999;2.106;2.500\n")
    long = ("--long", "area,age", "--value", "deaths", "--thousands", ".")
    interval = ("--mechanism", "interval", "--lower", "0", "--upper", "inf")
    release, _ = run_import(here / "t.csv", *long, "--exposure", "population", *interval)
    assert list(release.extras.exposure.values) == [10_000, 999]
    release, _ = run_import(here / "t.csv", *long, "--mechanism", "gaussian", "--sigma", "s")
    assert {each.sigma for each in release.known_mechanisms} == {1500, 2500}
    (here / "w.csv").write_text("area;x;y\nA;1.005;2.106\nB;3.001;9\n")
    (here / "e.csv").write_text("area;x;y\nA;10.000;20.000\nB;30.000;40.000\n")
    release, _ = run_import(here / "w.csv", "--thousands", ".", "--exposure", "e.csv", *interval)
    assert list(release.extras.exposure.values) == [10_000, 20_000, 30_000, 40_000]


def test_exposures_in_thousands_or_with_decimals_are_no_reason_to_warn(here):
    (here / "w.csv").write_text("place,flu,cold\nA,12,3\nB,4,7\nC,9,5\n")
    (here / "e.csv").write_text('"Person-years, thousands"\nplace,flu,cold\nA,12.5,3\nB,4.1,7\nC,9.2,5\n')
    assert "warning" not in run_import(here / "w.csv", "--exposure", "e.csv", *EXACT)[1]


@pytest.mark.parametrize(
    ("text", "said", "options"),
    [
        ("r,a,b\nNorth,,\nA,5,13\nB,,27\n", "got none in row 'North'", ("--absent", "")),
        ("r,a,b\nNorth,,\nA,5,13\nB,,27\n", "got none in row 'North'", ("--missing", "")),
        ("r,a,Notes\nA,5,\nB,12,\n", "got none in column 'Notes'", ("--missing", "")),
        ("region,a,b\n3,4,5\n1,9,13\n", "--row-labels region", ("--row-labels", "region")),
        ("Age,a,b\n0,4,5\n1+,9,13\n", "--row-labels Age", ("--row-labels", "Age")),
        ("when,a,b\n01.2019,4,5\n02.2019,9,13\n", "--row-labels when", ("--row-labels", "when")),
        ("r;x;a;b\nA;2018-2019;4;5\nB;2018-2019;9;13\n", "--row-labels r,x", ("--row-labels", "r,x")),
        ("r,a,b\n1,2,3\nX,9,13\n", "state --header-rows", ("--row-labels", "r", "--header-rows", "1")),
        ("r,a,b\n(1),2,3\nX,9,13\n", "state --header-rows", ("--row-labels", "r", "--header-rows", "1")),
        ("kind,a,b\n01067,4,5\n10115,9,13\n", "--row-labels kind", ("--row-labels", "kind")),
    ],
)
def test_headings_and_labels_are_no_counts(here, text, said, options):
    Path("t.csv").write_text(text)
    table = ("t.csv", "-o", "r.npz", "--mechanism", "suppression", "--below", "2", "--hides-zero")
    assert said in fails("import", *table)
    release = cv.Release.load(run("import", *table, *options) and "r.npz")
    assert release.labels[0] is not None
    assert release.shape[0] == text.count("\n") - 1
    hidden, masked = np.isnan(np.where(release.extras.mask, 0, release.reports)), release.extras.mask
    n = text.count(",\n") + text.count(",,")
    assert (hidden.sum(), 0 if masked is None else masked.sum()) == ((0, n) if "--missing" in options else (n, 0))


def test_rates_beside_counts_are_refused(here):
    Path("t.csv").write_text("r,a,% a,b,Rate per 1000\nA,5,13,7,1\nB,12,27,5,4\n")
    said = fails("import", "t.csv", "-o", "r.npz", *EXACT)
    assert "got '% a', 'Rate per 1000': delete columns of rates, shares and averages" in said
    assert "got '% a', 'Rate per 1000'" in fails("import", "t.csv", "-o", "r.npz", *EXACT, "--row-labels", "r")
    Path("t.csv").write_text("r,a,b\nA,5,7\nB,12,5\n")
    release, _ = run_import("t.csv", *EXACT)
    np.testing.assert_array_equal(release.reports, [[5, 7], [12, 5]])


WIDE_RATES = [
    ("place,flu,Rate\nA,120,12\nB,95,9\n", "column 'Rate'", ("Rate", "Rate (count)")),
    ("place,flu,Average\nA,120,12\nB,95,9\n", "column 'Average'", ("Average", "all")),
    ("what,A,B\nDeaths,120,95\nPopulation,900,800\n", "row 'Population'", ("Population", "Births")),
    ("place,flu,lower,upper\nA,12,7,20\nB,9,5,14\n", "column 'lower', column 'upper'", ("lower", "middle")),
]


@pytest.mark.parametrize(("text", "said", "renamed"), WIDE_RATES)
def test_rates_with_names_of_one_word_are_refused(here, text, said, renamed):
    Path("t.csv").write_text(text)
    assert f"must have counts only, got {said}: delete" in fails("import", "t.csv", "-o", "r.npz", *EXACT)
    found = json.loads(run("look", "t.csv", "--json").stdout)
    assert any("for --exposure." in asked for asked in found["questions"])
    assert found["command"] is None
    assert said in fails("import", "t.csv", "-o", "t.npz", *found["options"])
    Path("t.csv").write_text(text.replace(*renamed))
    assert run_import("t.csv", *EXACT)[0].shape == (2, text.split("\n")[0].count(","))


def test_levels_of_rates_are_refused(here):
    Path("t.csv").write_text("area,what,value\nN,Deaths,12\nN,Rate per 1000,1\nS,Deaths,9\nS,Rate per 1000,2\n")
    long = ("--long", "area,what", "--value", "value", *EXACT)
    assert "got what 'Rate per 1000': delete rates" in fails("import", "t.csv", "-o", "r.npz", *long)
    Path("t.csv").write_text(Path("t.csv").read_text().replace("Rate per 1000", "Births"))
    assert run_import("t.csv", *long)[0].shape == (2, 2)


@pytest.mark.parametrize("long", [False, True])
def test_thousands_are_asked_for_and_warned_of(here, long):
    text = "Jobs in {0}\narea,2019,2020\nN,12,14\nS,9,22\n"
    if long:
        text = "area,year,value,unit\nN,a,12,{0}\nN,b,9,{0}\nS,a,7,{0}\nS,b,5,{0}\n"
    options = ("--long", "area,year", "--value", "value", *EXACT) if long else EXACT
    Path("t.csv").write_text(text.format("Thousands"))
    said = "are the numbers thousands, or rates, rather than counts? Multiply thousands by 1,000 in the file"
    assert any(said in asked for asked in json.loads(run("look", "t.csv", "--json").stdout)["questions"])
    assert f"warning: {'Thousands' if long else 'Jobs in Thousands'!r}: {said}" in run_import("t.csv", *options)[1]
    Path("t.csv").write_text(text.format("persons"))
    assert "warning" not in run_import("t.csv", *options)[1]
    assert not any(said in asked for asked in json.loads(run("look", "t.csv", "--json").stdout)["questions"])
    multiplied = text.format("Thousands")
    for number in ("12", "14", "22", ",9", ",7", ",5"):
        multiplied = multiplied.replace(f"{number},", f"{number}000,").replace(f"{number}\n", f"{number}000\n")
    Path("t.csv").write_text(multiplied)
    assert "warning" not in run_import("t.csv", *options[:-6], "--mechanism", "rounding", "--base", "1000")[1]


def test_a_row_of_units_is_no_record(here):
    Path("t.csv").write_text("Region;2019;2020\n;1000;1.000\nN;12;14\nS;28;22\n")
    assert "got 1000, 1.000, which look like units, in" in fails("import", "t.csv", "-o", "r.npz", *EXACT)
    Path("t.csv").write_text(Path("t.csv").read_text().replace(";1000;1.000\n", ""))
    assert run_import("t.csv", *EXACT)[0].shape == (2, 2)
    Path("t.csv").write_text("Region;n;s;m;t\n;1 000;%;1 000;%\nN;12;3,1;14;2,2\nS;28;4,0;22;1,9\n")
    assert "got 1 000, %, 1 000, %, which look like units" in fails("import", "t.csv", "-o", "s.npz", *EXACT)
    Path("t.csv").write_text("n\n\n12\n<5\n")
    assert run_import("t.csv", "--missing", "", *EXACT)[0].shape == (3, 1)


def test_a_matrix_of_words_may_have_the_word_rate(here):
    counts = np.random.default_rng(1).poisson(1.0, (12, 30))
    names = ["rate", "average", "population", *(f"word{i}" for i in range(27))]
    for columns in (30, 10):
        pd.DataFrame(counts[:, :columns], columns=names[:columns]).to_csv("t.csv")
        np.testing.assert_array_equal(run_import("t.csv", *EXACT)[0].reports, counts[:, :columns])


def test_rows_with_one_label_are_warned_of(here):
    Path("t.csv").write_text("r,s,a\nM,A,5\nF,A,12\nM,B,6\n")
    assert (
        "several rows are called 'M'"
        in run_import("t.csv", *EXACT, "--row-labels", "r", "--missing", "A", "--missing", "B")[1]
    )
    release, said = run_import("t.csv", *EXACT, "--row-labels", "r,s")
    assert "several rows" not in said
    assert release.labels[0] == ("M A", "F A", "M B")


def test_a_first_record_of_numbers_in_order_is_one_among_numbers(here):
    Path("t.csv").write_text("r,a,b,c\n,1,2,3\nX,9,13,8\n")
    assert "got 1, 2, 3, which look like numbers of columns" in fails("import", "t.csv", "-o", "r.npz", *EXACT)
    Path("t.csv").write_text("a,b,c\n1,2,3\n7,9,9\n")
    np.testing.assert_array_equal(run_import("t.csv", *EXACT)[0].reports, [[1, 2, 3], [7, 9, 9]])


OFFICES = {  # the columns of counts, and what look reads
    "Finland": (
        "Alue,Ikä,2020,2021\nHelsinki,0-14,93210,92111\nHelsinki,15-64,450112,451000\nEspoo,0-14,54321,5\n",
        ["2020", "2021"],
        "--row-labels Alue,Ikä",
    ),
    "Norway": (
        "region;kjønn;Personer 2020K1;Personer 2020K2\nOslo;Menn;12;15\nOslo;Kvinner;..;7\nBergen;Menn;9;33\n",
        ["Personer 2020K1", "Personer 2020K2"],
        "--row-labels region,kjønn",
    ),
    "France": (
        "CODGEO;LIBGEO;NAIS21;DECE21\n01001;Abergement;5;3\n2A004;Ajaccio;512;430\n01002;Varey;9;7\n",
        ["NAIS21", "DECE21"],
        "--row-labels CODGEO,LIBGEO",
    ),
    "Great Britain": (
        "date,geography,geography code,Male,Female\n2024,Adur,E07000223,125,90\n2024,Arun,E07000224,330,245\n",
        ["Male", "Female"],
        "--row-labels date,geography,geography code",
    ),
    "Japan": (
        "時間軸コード,時間軸,地域コード,地域,男,女\n2020000000,2020年,01000,北海道,60,61\n2020000000,2020年,02000,青森県,20,25\n",
        ["男", "女"],
        "--row-labels 時間軸コード,時間軸,地域コード,地域",
    ),
    "Switzerland": (  # counts below five are hidden as an interval, as ages are given
        "Kanton;Altersgruppe;2019;2020\nZürich;0-19;1'412;1'390\nZürich;65+;<5;12\nUri;0-19;44;<5\nUri;65+;9;7\n",
        ["2019", "2020"],
        "--row-labels Kanton,Altersgruppe",
    ),
    "one group of ages": (
        "Alue,Sukupuoli,Ikä,2020 Lukumäärä,2021 Lukumäärä\nEspoo,Miehet,0-14,276,277\nEspoo,Naiset,0-14,264,258\n",
        ["2020 Lukumäärä", "2021 Lukumäärä"],
        "--row-labels Alue,Sukupuoli,Ikä",
    ),
    "Sweden": (
        "region,ålder,kön,2019,2020\nÖrebro,0-4 år,män,120,..\nÖrebro,0-4 år,kvinnor,98,7\nÖrebro,5-9 år,män,101,99\n",
        ["2019", "2020"],
        "--row-labels region,ålder,kön",
    ),
    "sexes beside two labels": (
        "region,age,male,female\nNorth,0-14,120,110\nNorth,15+,310,305\nSouth,0-14,90,85\nSouth,15+,210,199\n",
        ["male", "female"],
        "--row-labels region,age",
    ),
    "births and deaths by sex": (
        "year;county;births, girls;births, boys;deaths, women;deaths, men\n2019;Oslo;2;5;7;9\n2020;Oslo;9;7;3;4\n",
        ["births, girls", "births, boys", "deaths, women", "deaths, men"],
        "--row-labels year,county",
    ),
    "Mexico": (
        "CVE,NOM_ENT,P_0A2\n1,Aguascalientes,50\n4,Baja California,48\n3,Baja California Sur,41\n",
        ["P_0A2"],
        "--row-labels CVE,NOM_ENT",
    ),
}


BELGIUM = [  # a population is what is counted
    f"{code}|{place}|{sex}|{age}|{n + age}"
    for code, place, n in ((11001, "Aartselaar", 80), (11002, "Antwerpen", 3100))
    for sex, age in product("MF", (0, 1))
]
FRANCE = [
    f"{code},{sex},{place},{age} ans,{code * n}"
    for code, place in ((7, "Ain"), (9, "Var"))
    for (sex, n), age in product((("F", 3), ("H", 5)), ("0-4", "5-9"))
]


@pytest.mark.parametrize(
    ("header", "rows", "axes", "value"),
    [
        (
            "CD_REFNIS|TX_DESCR_NL|CD_SEX|CD_AGE|MS_POPULATION",
            BELGIUM,
            ["TX_DESCR_NL", "CD_SEX", "CD_AGE"],
            "MS_POPULATION",
        ),
        ("code,sexe,libelle,age,effectif", FRANCE, ["sexe", "libelle", "age"], "effectif"),
    ],
)
def test_codes_beside_their_words_are_no_reports(here, header, rows, axes, value):
    Path("t.csv").write_text("\n".join([header, *rows]))
    found = json.loads(run("look", "t.csv", "--json").stdout)
    assert (list(found["axes"]), found["value"]) == (axes, value)
    assert not any("may be reports as well" in asked for asked in found["questions"])
    run(*shlex.split(found["command"])[1:])


@pytest.mark.parametrize(
    "text",
    [
        "cause,men,women\nNeoplasms,40,50\n  of which lung,15,10\nCirculatory,61,70\n",
        "Alter;Fälle;davon männlich\n0-19;41;18\n20+;77;40\n",
        "area,cause,n\nA,Krebs,40\nA,darunter: Lunge,15\nB,Krebs,31\nB,darunter: Lunge,11\n",
    ],
)
def test_parts_of_other_lines_are_warned_of(here, text):
    Path("t.csv").write_text(text)
    found = json.loads(run("look", "t.csv", "--json").stdout)
    assert any("may be a part of another line of the table" in asked for asked in found["questions"])
    assert "may be a part of another line" in run(*shlex.split(found["command"])[1:]).stderr
    for word in ("  of which lung", "davon männlich", "darunter: Lunge"):
        text = text.replace(word, "dont know")
    Path("t.csv").write_text(text)
    assert not any(
        "part of another" in asked for asked in json.loads(run("look", "t.csv", "--json").stdout)["questions"]
    )


@pytest.mark.parametrize("hidden", ["-1", "<5", "*"])
def test_a_word_called_age_has_counts(here, hidden):
    rows = [f"d{i},{hidden if i % 3 == 0 else i},{7 + i},{hidden if i % 2 else 9}" for i in range(9)]
    Path("t.csv").write_text("\n".join(["doc,age,men,tax", *rows]))
    found = json.loads(run("look", "t.csv", "--json").stdout)
    assert "age" in [label for levels in found["axes"].values() for label in levels]


def test_groups_of_ages_are_no_intervals_of_counts(here):
    """Beside counts below five, which are: both are written as intervals."""
    days = ("01.01.2020", "01.02.2020", "01.03.2020")
    counts = (("0-19", 40), ("20+", "<5"))
    rows = [f"{day};{place};{age};{n}" for day in days for place in ("ZH", "UR") for age, n in counts]
    Path("t.csv").write_text("\n".join(["Datum;Kanton;Altersgruppe;Fälle", *rows]))
    found = json.loads(run("look", "t.csv", "--json").stdout)
    assert list(found["axes"]) == ["Datum", "Kanton", "Altersgruppe"]
    run(*shlex.split(found["command"])[1:])
    assert np.isnan(cv.Release.load("t.npz").reports).sum() == 6


@pytest.mark.parametrize("office", OFFICES)
def test_codes_groups_and_times_of_offices_are_labels(here, office):
    text, columns, labels = OFFICES[office]
    Path("t.csv").write_text(text)
    fails("import", "t.csv", "-o", "r.npz", *EXACT)  # without a word about labels
    command = shlex.split(json.loads(run("look", "t.csv", "--json").stdout)["command"])
    assert labels in " ".join(command)
    run(*command[1:])
    release = cv.Release.load("t.npz")
    assert release.column_labels == tuple(columns)
    last = [float(number) for number in text.strip().replace(";", ",").rsplit(",", len(columns))[1:]]
    assert release.reports[-1].tolist() == last
