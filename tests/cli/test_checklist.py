"""``countveil checklist``: what a paper should say of a fit."""

import json

import pytest

import countveil as cv
from countveil.report.checklist import Files, checklist_of
from tests.commands import SHORT, fails, privatized, run


@pytest.mark.long
def test_it_is_printed_written_and_given_as_json(here):
    privatized()
    run("fit", "topics", "r.npz", "-o", "f.nc", *SHORT)
    fit, release = cv.TopicModel.load("f.nc"), cv.Release.load("r.npz")
    assert run("checklist", "f.nc").stdout == f"{checklist_of(fit, files=Files('f.nc'))}\n"
    made = checklist_of(fit, release, Files("f.nc", "r.npz"))
    said = run("checklist", "f.nc", "--release", "r.npz", "-o", "c.md").stdout
    assert said == f"Wrote c.md: {len(made.open)} of {len(made.items)} boxes are open.\n"
    assert (here / "c.md").read_text(encoding="utf-8") == f"{made}\n"
    assert "exists already" in fails("checklist", "f.nc", "-o", "c.md")
    found = json.loads(run("checklist", "f.nc", "--release", "r.npz", "--json").stdout)
    assert list(found) == ["checklist", "diagnostics", "state", "verdict", "mechanism"]
    assert [row["name"] for row in found["checklist"]] == [item.name for item in made.items]
    assert found["checklist"][0].keys() == set(made.table.columns)
    assert (found["state"], found["verdict"]) == (fit.diagnostics().state, fit.diagnostics().verdict)


def test_what_it_cannot_do_is_refused_in_one_line(here):
    privatized()
    run("fit", "topics", "r.npz", "-o", "f.nc", *SHORT)
    assert "output must end in .md, got c.txt" in fails("checklist", "f.nc", "-o", "c.txt")
    assert "no release at none.npz" in fails("checklist", "f.nc", "--release", "none.npz")
    assert "no fit at none.nc" in fails("checklist", "none.nc")
