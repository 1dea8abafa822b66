import pytest
import typer

import countveil as cv
from countveil.cli.errors import plain_errors
from tests.commands import privatized, run


def test_an_expected_error_is_one_line_and_exit_status_1(capsys):
    @plain_errors
    def command():
        raise ValueError("first line\n  second line")

    with pytest.raises(typer.Exit) as stopped:
        command()
    assert stopped.value.exit_code == 1
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "error: first line second line\n")


@pytest.mark.parametrize(
    ("error", "message"), [(MemoryError("draws must"), "draws must"), (MemoryError(), "out of memory")]
)
def test_memory_that_does_not_suffice_is_one_line(capsys, error, message):
    @plain_errors
    def command():
        raise error

    with pytest.raises(typer.Exit):
        command()
    assert capsys.readouterr().err == f"error: {message}\n"


def test_a_fault_of_the_program_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        plain_errors(lambda: 1 / 0)()


def test_ctrl_c_exits_with_130(here, monkeypatch):
    privatized()

    def interrupt(self, data, **_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cv.TopicModel, "fit", interrupt)
    assert run("fit", "topics", "r.npz", "-o", "f.nc", status=130).stderr.strip() == "interrupted"


def test_ctrl_c_during_a_choice_says_that_nothing_is_kept(here, monkeypatch):
    privatized()

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("countveil.fit.choosing.compare_quickly", interrupt)
    said = run("fit", "topics", "r.npz", "-o", "f.nc", "--topics", "auto", status=130).stderr.strip()
    assert said.startswith(
        "interrupted while n_topics was chosen, before the fit began: nothing is kept; give a number"
    )
    assert not (here / "f.nc").exists()
