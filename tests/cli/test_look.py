import json
import shlex
from pathlib import Path

import pytest

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


def test_what_is_stated_is_in_the_command(here):
    (here / "my table.csv").write_text("made up\nplace,a\nAda,12\nBo,15\n")
    found = json.loads(run("look", "my table.csv", "--skip", "1", "--json").stdout)
    assert shlex.split(found["command"])[:6] == [
        "countveil",
        "import",
        "my table.csv",
        "-o",
        "my table.npz",
        "--skip",
    ]
    run(*shlex.split(found["command"])[1:])


def test_files_that_are_no_tables_are_refused(here):
    assert "no table at t.csv" in fails("look", "t.csv")
    assert "must end in one of .csv" in fails("look", "t.npz")
    (here / "t.csv").write_text("a,b\n1,2\n")
    assert "--separator must be comma" in fails("look", "t.csv", "--separator", "commas")


@pytest.mark.parametrize(
    ("text", "options"),
    [
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
    ],
)
def test_codes_sigmas_populations_and_zeros_are_in_the_command_that_works(here, text, options):
    (here / "t.csv").write_text(text)
    command = json.loads(run("look", "t.csv", "--json").stdout)["command"]
    assert command == f"countveil import t.csv -o t.npz {options}"
    run(*shlex.split(command)[1:])
