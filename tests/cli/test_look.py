import json
import shlex
from pathlib import Path

import openpyxl
import pytest

import countveil as cv
from tests.commands import fails, run

TABLES = Path(__file__).parents[1] / "tables"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder for files."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_look_prints_one_screen(here):
    lines = run("look", TABLES / "wonder-txt/w.txt").stdout.splitlines()
    assert "tab-separated, utf-8, 1 header row, 5 lines below the table left out" in lines[0]
    assert "  County: 12 (County 00, ZZ, County 01, ZZ" in lines[1]
    assert "Totals: Ten-Year Age Groups (empty)." in lines
    assert "'Suppressed' in 42% of the cells, and no number from 1 to 11: counts of 1 to 9 hidden?" in lines
    assert lines[-1].startswith("  countveil import ")
    assert len(lines) < 15


def test_zeros_that_may_be_hidden_counts_and_years_across(here):
    assert (
        "No number from 1 to 4, and 45% zeros: small counts written as 0?"
        in run("look", TABLES / "hidden-as-zero/zeros.csv").stdout
    )
    found = json.loads(run("look", TABLES / "time-order/years_across.csv", "--json").stdout)
    assert found["dates"] == ["columns"]
    assert found["lattice"] == {"step": 3, "offset": 0}


def test_noise_has_a_parameter_that_only_its_publisher_knows(here):
    (here / "t.csv").write_text("place,a,b\nAda,-3.25,4.5\nBo,12.75,0.5\n")
    said = run("look", "t.csv").stdout
    assert "Some numbers are negative or not whole: noise?" in said
    assert said.strip().endswith("--mechanism gaussian --sigma SIGMA")


def test_a_list_of_events_leaves_out_zeros(here):
    (here / "t.csv").write_text("quarter,state,deaths\n2002Q1,A,1\n2002Q1,B,1\n2002Q2,A,1\n2002Q3,C,4\n")
    found = json.loads(run("look", "t.csv", "--json").stdout)
    asked = "5 cells without a row: zeros (--background 0) or never reported (--background missing)? "
    assert asked + "The command states 0." in found["questions"]
    assert "5 cells without a row (0)." in run(*shlex.split(found["command"])[1:]).stdout


@pytest.mark.parametrize(
    ("counts", "listed"), [("1114", True), ("1111", True), ("3353", False), ("1122", False), ("1102", False)]
)
def test_a_list_of_events_has_mostly_ones_and_no_zeros(here, counts, listed):
    cells = zip(["2002,A", "2002,B", "2003,A", "2004,C"], counts, strict=True)
    (here / "t.csv").write_text("q,s,n\n" + "".join(f"{cell},{count}\n" for cell, count in cells))
    found = json.loads(run("look", "t.csv", "--json").stdout)
    assert ("--background 0 --alpha 0" in found["command"]) == listed
    assert any("or hidden, as the command reads them?" in asked for asked in found["questions"]) != listed


@pytest.mark.parametrize(
    ("total", "options"),
    [
        (2, "--background 0 --totals-in-table drop --alpha 0"),
        (5, "--totals-in-table use --mechanism interval --lower 0 --upper inf"),  # so cells without a row are not zeros
    ],
)
def test_totals_show_whether_a_list_of_events_is_complete(here, total, options):
    rows = "q,s,n\n2002,A,1\n2002,B,1\n2003,A,1\n2004,C,2\n"
    (here / "t.csv").write_text(f"{rows}2002,Total,{total}\n2003,Total,1\n2004,Total,2\n")
    command = json.loads(run("look", "t.csv", "--json").stdout)["command"]
    assert command.endswith(f"--long q,s --value n {options}")
    assert "Wrote t.npz: 3 x 3 reports" in run(*shlex.split(command)[1:]).stdout


def test_what_is_stated_is_in_the_command(here):
    (here / "my table.csv").write_text("made up\nplace,a\nAda,12\nBo,15\n")
    found = json.loads(run("look", "my table.csv", "--skip", "1", "--json").stdout)
    assert shlex.split(found["command"])[:6] == ["countveil", "import", "my table.csv", "-o", "my table.npz", "--skip"]
    run(*shlex.split(found["command"])[1:])


def test_a_file_whose_name_begins_like_an_option(here):
    (here / "-t.csv").write_text("place,a\nAda,12\nBo,15\n")
    found = json.loads(run("look", "./-t.csv", "--json").stdout)
    run(*shlex.split(found["command"])[1:])
    assert cv.Release.load("-t.npz").shape == (2, 1)


def test_files_that_are_no_tables_are_refused(here):
    assert "no table at t.csv" in fails("look", "t.csv")
    assert "must end in one of .csv" in fails("look", "t.npz")
    assert "got '.xls': save it as .csv" in fails("look", "t.xls")
    assert "got '.zip': unpack it" in fails("look", "t.zip")
    (here / "t.csv").write_text("a,b\n1,2\n")
    assert "--separator must be comma" in fails("look", "t.csv", "--separator", "commas")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (  # rounded totals, and rows of zeros that were left out
            "year,age,n\n"
            + "".join(f"{y},0-4,30\n{y},5-9,27\n{y},10-14,12\n{y},15+,6\n{y},All ages,78\n" for y in (2017, 2018, 2019))
            + "2020,0-4,30\n2020,5-9,27\n2020,15+,6\n2020,All ages,66\n",
            (
                "--long year,age --value n --background 0 --totals-in-table use "
                "--totals-mechanism 'random-rounding --base 3' --mechanism random-rounding --base 3"
            ),
        ),
        (  # exact totals of rounded counts
            "r,a,b,c,All\nA,33,66,12,113\nB,9,21,39,68\nC,51,93,6,149\n",
            "--totals-in-table use --totals-mechanism exact --mechanism random-rounding --base 3",
        ),
        (  # sums of the rounded counts themselves
            "r,a,b,c,All\nA,33,66,12,111\nB,9,21,39,69\nC,51,93,6,150\n",
            "--totals-in-table drop --mechanism random-rounding --base 3",
        ),
        (  # of more than the table has
            "r,a,b,c,All\nA,33,x,12,50\nB,21,21,39,166\nC,51,93,16,160\n",
            "--absent x --totals-in-table drop --mechanism suppression --below 10 --hides-zero",
        ),
        (
            "r,a,b,c,All\nA,33,x,12,50\nB,x,21,39,66\nC,51,93,16,160\n",
            "--absent x --totals-in-table use --mechanism suppression --below 10 --hides-zero",
        ),
        (  # of which one shows that a count of 8 was hidden
            "r,a,b,c,All\nA,33,x,12,53\nB,21,21,39,81\nC,51,93,16,160\n",
            "--absent x --totals-in-table use --mechanism suppression --below 10 --hides-zero",
        ),
        (
            "r,a,b,c,All\nA,33,x,29,82\nB,21,21,39,81\nC,51,93,26,170\n",
            "--absent x --totals-in-table use --mechanism suppression --below 21 --hides-zero",
        ),
        (  # and of 15 beside a count of 12
            "r,a,b,c,All\nA,33,x,12,60\nB,21,21,39,81\nC,51,93,16,160\n",
            "--missing x --totals-in-table use --mechanism interval --lower 0 --upper inf",
        ),
        (
            "geo,sex,OBS_VALUE,OBS_FLAG\nA,M,12,\nA,F,,c\nA,T,27,\nB,M,40,\nB,F,34,\nB,T,74,\n",
            "--long geo,sex --value OBS_VALUE --totals-in-table use --mechanism interval --lower 0 --upper inf",
        ),
        (  # beside counts of 1
            "r,a,b,All\nA,33,x,40\nB,1,21,22\n",
            "--missing x --totals-in-table use --mechanism interval --lower 0 --upper inf",
        ),
        ("r,a,b,All\nA,33,<5,40\nB,12,21,33\n", "--totals-in-table drop"),
        (
            "r,a,b\nA,133,x\nB,x,21\nAll,.,29\n",
            "--absent x --missing . --totals-in-table use --mechanism suppression --below 20 --hides-zero",
        ),
        (
            '"Area\nname",sex,n\nA,M,1234\nA,F,2345\nB,M,x\nB,F,3456\n',
            "--absent x --long 'Area name,sex' --value n --mechanism suppression --below 100 --hides-zero",
        ),
        ("place,a,b\nAda,-99,4\nBo,12,-99\n", "--absent -99 --mechanism suppression --below 4 --hides-zero"),
        (
            "shop,item,count,noise_stddev\nx,a,40.5,4\nx,b,31.2,4\ny,a,26.1,4\n",
            "--long shop,item --value count --mechanism thresholded --noise gaussian --sigma noise_stddev --above 26",
        ),
        (
            "town,age,deaths,population\nA,x,12,500\nA,y,*,90\nB,x,0,400\nB,y,31,700\n",
            "--absent '*' --long town,age --value deaths --exposure population --mechanism suppression --below 10",
        ),
        ("t,a,b\nx,0,5\ny,7,0\nz,0,9\n", "--absent 0 --mechanism suppression --below 5 --hides-zero"),
        ("r,a,b\nA,..C,13\nB,12,27\nC,22,9\n", "--absent ..C --mechanism suppression --below 8 --hides-zero"),
        ("r,a,b\nA,[c],13\nB,12,27\nC,22,9\n", "--absent '[c]' --mechanism suppression --below 8 --hides-zero"),
        (
            "r;a;b\nA;12;.\nB;4;7\nC;3;9\nTotal;19;20\n",
            "--missing . --totals-in-table use --mechanism interval --lower 0 --upper inf",
        ),
        ("r,a,b\nA,-,13\nB,12,-\nC,0,5\n", "--zero - --alpha 0"),
        ("r,a,b\nA,,13\nB,12,1\nC,0,5\n", "--missing '' --mechanism interval --lower 0 --upper inf"),
        ("r,a,b\nA,x,13\nB,12,1\nC,0,5\n", "--missing x --mechanism interval --lower 0 --upper inf"),
        ("id,r,a,b\n7,A,4,13\n9,B,12,1\n", "--row-labels id,r --alpha 0"),
        (
            "land,page_id,date,noisy_views\nA,77,2022-01-01,9\nB,77,2022-01-01,4\nA,77,2022-01-02,1\n",
            "--long land,date --value noisy_views --mechanism interval --lower 0 --upper inf",
        ),
        (
            "area,sex,n\nA,M,1234\nA,F,2345\nB,M,x\nB,F,3456\n",
            "--absent x --long area,sex --value n --mechanism suppression --below 100 --hides-zero",
        ),
        (
            "kreis;a;b\nA;c;13\nB;<5;30\nC;low;22\n",
            "--absent c --absent low --mechanism suppression --below 5 --hides-zero",
        ),
        (
            "kreis;a;b\nA;c;13\nB;<20;30\nC;low;22\n",
            "--absent c --absent low --mechanism suppression --below 13 --hides-zero",
        ),
        ("Rank,City,a\n1,A,40\n2,B,31\n3,C,9\n", "--row-labels Rank,City --alpha 0"),
        (
            "r,s,2019,2020\nN,A,12,13\nN,B,14,15\nN,Total,26,28\nTotal,,26,28\n",
            "--row-labels r,s --totals-in-table drop --alpha 0",
        ),
        ("Age,a,b\n0,5,7\n1,4,6\n2+,7,1\n", "--row-labels Age --alpha 0"),
        ("Age,a,b\n0,5,7\n1,4,6\nAll ages,9,13\n", "--totals-in-table drop --alpha 0"),
        ("Monat;a;b\n01.2019;5;7\n02.2019;4;1\n", "--row-labels Monat --alpha 0"),
        ("stratum,arm,count\n1,1,5\n1,2,7\n2,1,4\n2,2,1\n", "--long stratum,arm --value count --alpha 0"),
        ("r;a;b\nA;12;.\nB;4;•\n", "--missing . --missing '•' --alpha 0"),
        ("n,m,sort,k,nr\nA,x,d,13,7\nB,y,d,27,9\n", "--row-labels n,m,sort --alpha 0"),
        ("day,x,y\n" + "".join(f"2020-01-{i + 10},{i * i + 1},{7 * i % 5}\n" for i in range(12)), "--alpha 0"),
        (
            "area,sex,jobs,disclosure\nA,M,12,\nA,F,0,N\nB,M,0,N\nB,F,34,\n",
            "--status disclosure --missing N --long area,sex --value jobs --alpha 0",
        ),
        (
            "geo,sex,OBS_VALUE,OBS_FLAG\nA,M,12,\nA,F,0,n\nB,M,0,n\nB,F,34,\n",  # less than half a unit
            "--long geo,sex --value OBS_VALUE --absent 0 --mechanism suppression --below 12 --hides-zero",
        ),
        (
            'area,"sex, coded",n\nA,M,1234\nA,F,2345\nB,M,x\nB,F,3456\n',
            "--absent x --long 'area,\"sex, coded\"' --value n --mechanism suppression --below 100 --hides-zero",
        ),
        ('id,"r, s",a,b\n7,A,4,13\n9,B,12,1\n', "--row-labels 'id,\"r, s\"' --alpha 0"),
    ],
)
def test_commands_work_as_they_are_printed(here, text, options):
    (here / "t.csv").write_text(text)
    command = json.loads(run("look", "t.csv", "--json").stdout)["command"]
    assert command == f"countveil import t.csv -o t.npz {options}"
    run(*shlex.split(command)[1:])


@pytest.mark.parametrize("path", sorted(TABLES.rglob("*.*sv")), ids=lambda path: path.name)
def test_every_table_is_imported_by_its_command(here, path):
    command = shlex.split(json.loads(run("look", path, "--json").stdout)["command"])
    run(*command[1:])


def refused(found):
    """The error of the command that look would print if it did not see that it is refused."""
    assert found["command"] is None
    said = run("look", "t.csv").stdout
    assert "countveil import t.csv" not in said
    assert "`countveil import` refuses this table until" in said
    assert said.strip().endswith(shlex.join(found["options"]))
    return run("import", "t.csv", "-o", "t.npz", *found["options"], status=1).stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("r,a,b\nNorth,,\nA,5,13\nB,12,27\n", "must have cells in every row and column, got none in row 'North'"),
        ("r,Population,a\nA,500,13\nB,900,27\n", "must have counts only, got column 'Population'"),
        ("area,what,n\nN,Deaths,12\nN,Rate,1\nS,Deaths,9\nS,Rate,2\n", "must have counts only, got what 'Rate'"),
        ("r,a,b\nA,12,0.13\nB,14,0.5\nC,14,*\n", "reports must be whole numbers, got 0.13"),
    ],
)
def test_there_is_no_command_for_what_is_refused(here, text, message):
    (here / "t.csv").write_text(text)
    assert message in refused(json.loads(run("look", "t.csv", "--json").stdout))


@pytest.mark.parametrize("cell", ["12a", "12*", "5 [2]", "(5)", "$5", "1 23", '"few\nonly"'])
def test_what_may_be_a_number_is_asked_for_and_refused(here, cell):
    (here / "t.csv").write_text(f"r,a,b\nA,{cell},13\nB,12,27\nC,22,9\n")
    found = json.loads(run("look", "t.csv", "--json").stdout)
    assert found["questions"][0].startswith("What is '")
    assert "--missing" not in found["options"]
    assert "must hold numbers" in refused(found)


def test_the_column_of_reasons_may_have_any_name(here):
    (here / "t.csv").write_text("area,sex,n,why\nA,M,12,\nA,F,23,\nB,M,,x\nB,F,34,\nC,M,,x\nC,F,9,\n")
    found = json.loads(run("look", "t.csv", "--status", "why", "--json").stdout)
    assert "--status why --absent x --long area,sex" in found["command"]
    assert found["words"] == {"x": 2}
    run(*shlex.split(found["command"])[1:])
    assert "--status must be a column of a table with a row" in fails("look", "t.csv", "--status", "no")
    (here / "wide.csv").write_text("r,a,b\nA,4,13\nB,12,1\n")
    assert "got 'a', and a row for each record" in fails("look", "wide.csv", "--status", "a")


@pytest.mark.parametrize("cells", [(-1, -2, 3, 4), (-1, 2, 3, 4), (-1, -9, -9, 4)])
def test_negative_numbers_of_several_kinds_are_noise(here, cells):
    (here / "t.csv").write_text("r,a,b\nA,{},{}\nB,{},{}\n".format(*cells))
    assert run("look", "t.csv").stdout.strip().endswith("-o t.npz --mechanism two-sided-geometric --alpha ALPHA")


def test_a_first_column_that_increases_names_the_rows(here):
    rows = [f"{26001 + 2 * i},{i % 4 - 2},{(7 * i) % 5 - 1}" for i in range(12)]
    (here / "t.csv").write_text("county,a,b\n" + "\n".join(rows) + "\n")
    found = run("look", "t.csv")
    assert not found.stderr
    assert "Does county name the rows?" in found.stdout
    assert "--row-labels county --mechanism two-sided-geometric --alpha ALPHA" in found.stdout
    short = [f"{3 + 2 * i},{i % 4 - 2},{(7 * i) % 5 - 1}" for i in range(9)]
    (here / "t.csv").write_text("first,a,b\n" + "\n".join(short) + "\n")
    assert "--row-labels" not in run("look", "t.csv").stdout


def test_labels_among_the_cells_do_not_become_words(here):
    (here / "t.csv").write_text("r,a,b\n2019,,\nA,5,13\nB,12,27\n2020,,\nA,6,1\nB,2,3\n")
    assert "--missing A" not in run("look", "t.csv").stdout
    (here / "t.csv").write_text(",region,a,b\n0,A,1,3\n1,B,2,8\n2,C,6,7\n")
    assert "\n  --alpha 0" in run("look", "t.csv").stdout
    (here / "t.csv").write_text("r,yes,a\nA,True,1\nB,False,2\n")
    assert "\n  --alpha 0" in run("look", "t.csv").stdout


def test_rows_of_one_cell_and_further_reports_are_asked_for(here):
    (here / "t.csv").write_text("area,age,count,cases\nA,x,5,1\nA,y,6,2\nB,x,9,1\nB,y,1,3\nB,y,1,4\n")
    found = json.loads(run("look", "t.csv", "--json").stdout)
    assert found["long"] == ["area", "age"]
    assert "'cases' may be reports as well" in found["questions"][0]
    assert found["questions"][1].startswith("Some rows have the same area and age")
    assert "each cell once" in refused(found)
    more = found["options"]
    more[more.index("--long") + 1] += ",cases"  # as it asks
    run("import", "t.csv", "-o", "t.npz", *more, "--background", "0")


def test_a_workbook_with_a_cover_is_read_by_the_name_of_its_sheet(here):
    book = openpyxl.Workbook()
    book.active.append(["Contents", "Page"])
    sheet = book.create_sheet("Table 1")
    for row in (["region", "flu"], ["A", 5], ["B", 7]):
        sheet.append(row)
    book.save("t.xlsx")
    assert "'Sheet' without numbers: state --sheet 'Table 1'" in fails("look", "t.xlsx")
    assert "--sheet must be one of 'Sheet', 'Table 1'" in fails("look", "t.xlsx", "--sheet", "no")
    found = json.loads(run("look", "t.xlsx", "--sheet", "Table 1", "--json").stdout)
    assert "--sheet 'Table 1'" in found["command"]
    assert "sheet 'Table 1', 1 more not read" in run(*shlex.split(found["command"])[1:]).stdout


def questions_of(text):
    Path("t.csv").write_text(text)
    return json.loads(run("look", "t.csv", "--json").stdout)["questions"]


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("r,Population,a\nA,500,13\nB,900,27\n", "Counts, rates or a population in 'Population'?"),
        ("r,a,average\nA,50,13\nB,90,27\n", "Counts, rates or a population in 'average'?"),
        ("r,A,B\nDeaths,50,13\nRate,90,27\n", "Counts, rates or a population in 'Rate'?"),
        ("age,a,b\n0-4,50,13\n05.Sep,90,27\n", "Was '05.Sep' a group such as '0-4', which a spreadsheet made a date?"),
        ("age,a,b\n0-4,50,13\nOct-14,90,27\n", "Was 'Oct-14' a group such as '0-4', which a spreadsheet made a date?"),
        (
            "r,a,lat,lon\nA,5,48.1,11\nB,7,52.5,13.4\nC,4,50.1,8.6\n",
            "'lat', 'lon' have decimals, unlike the other columns",
        ),
        ("地域,a,b\nA,１２,－\nB,Ｘ,１５\n", "Is '－' a zero?"),
        ("地域,a,b\nA,１２,ｘ\nB,９,１５\n", "'ｘ' in 25% of the cells, and no number from 0 to 8"),
        (
            "g,s,value,population\nA,x,5,90\nA,y,6,70\nB,x,9,80\n",
            "'population' has no number for cells without a row: add these rows, for --exposure population.",
        ),
        ("g,s,value\nA,x,5\nA,y,6\nB,x,9\n", "1 cell without a row: zeros (--background 0), never reported"),
        ("r,a,b\nA,-,13\nB,12,27\n", "Is '-' a zero? If hidden, name it by --absent."),
        ("r,a,b\nA,-,0\nB,12,27\n", "Is '-' a zero, though 0 is there as well? If hidden"),
        ("r,a,b\nA,.,13\nB,12,27\n", "Was '.' never reported? If hidden because of the count, name it by --absent."),
        ("r,a,b\nM,4,13\nF,12,27\nM,5,14\n", "Several rows are called 'M'"),
        ("r,a,b\nUK,9,13\n  A,4,7\n  B,5,7\n", "Is 'UK' the total of the indented rows below it?"),
        ("r,a,b\nNorth,,\nA,5,13\nB,12,27\n", "No cells in row 'North': headings or notes?"),
        ("r,a,b,Notes\nA,5,13,\nB,12,27,\n", "No cells in column 'Notes': headings or notes?"),
    ],
)
def test_what_may_be_no_count_is_asked_for(here, text, question):
    assert any(asked.startswith(question) for asked in questions_of(text))
    assert not any(asked.startswith("No cells in") for asked in questions_of("r,a\nA,5\nB,\nC,12\n"))
    usual = questions_of("r,a,b\n0-4,5,13\n5-9,12,27\n")
    (said,) = usual
    assert said.startswith("No sign of rounding or hiding: are these the counts themselves? ")


def test_numbers_that_are_the_counts_are_read_without_noise(here):
    (here / "t.csv").write_text("year,a,b\n2001,5,13\n2002,12,27\n2003,0,4\n")
    command = json.loads(run("look", "t.csv", "--json").stdout)["command"]
    assert "there is no noise" in run(*shlex.split(command)[1:]).stdout


def test_numbers_that_are_not_whole_do_not_bound_hidden_counts(here):
    assert "'*' in 17% of the cells, and no number from 0 to 11: counts of 0 to 9 hidden?" in questions_of(
        "r,a,b\nA,12,0.13\nB,14,0.5\nC,14,*\n"
    )


def test_texts_that_may_be_numbers_do_not_make_zeros_hidden(here):
    assert not any("small counts written as 0?" in asked for asked in questions_of("r,a,b\nA,(1-4),12\nB,14,0\n"))


def test_digits_that_are_no_decimals(here):
    assert "What is '123¹'" in questions_of("r,2019,2020\nA,123¹,130\nB,45,50\n")[0]


def test_a_word_of_hidden_counts_may_stand_among_texts_that_are_not_read(here):
    asked = questions_of("r,a,b\nA,Suppressed,Suppressed\nB,12,171.4 (Unreliable)\nC,44,9\n")
    assert "What is '171.4 (Unreliable)'?" in asked[0]
    assert any("'Suppressed' in 33% of the cells" in question for question in asked)


def test_what_is_known_as_a_total_is_asked_for_once(here):
    assert not any("indented" in asked for asked in questions_of("r,a,b\nUK,90,130\n  A,43,70\n  B,47,60\n"))
    command = ("import", "t.csv", "-o", "r.npz", "--mechanism", "interval", "--lower", "0", "--upper", "inf")
    questions_of("r,a,b\nUK,9,13\n  A,4,7\n  B,5,7\n")
    run(*command, "--total", "UK", "--totals-in-table", "drop")
    assert cv.Release.load("r.npz").row_labels == ("A", "B")
