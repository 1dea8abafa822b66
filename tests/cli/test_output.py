import ast
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer

import countveil as cv
from countveil.cli.fit import print_members
from countveil.cli.output import check_folder, plain_errors, read_table, say, write_text
from countveil.fit.topics import TOPICS
from tests.commands import SHORT, WORDS, fails, privatized, run


def test_a_text_is_written_whole_or_not_at_all(tmp_path):
    write_text(tmp_path / "a.txt", "naïve")
    assert (tmp_path / "a.txt").read_bytes() == "naïve".encode()
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "a.txt", "\ud800")
    assert (tmp_path / "a.txt").read_bytes() == "naïve".encode()
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_folder_for_outputs_is_a_folder_or_new(tmp_path):
    check_folder(tmp_path)
    check_folder(tmp_path / "new")
    Path(tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="file must be a directory for the files, got a file: give the path"):
        check_folder(tmp_path / "file")


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_no_input_is_ever_overwritten(here, force):
    (here / "words.txt").write_text("\n".join(WORDS))
    (here / "link.csv").symlink_to("counts.csv")
    (here / "hard.csv").hardlink_to(here / "counts.csv")
    (here / "folder").mkdir()
    before = {path.name: path.read_bytes() for path in here.iterdir() if path.is_file()}
    level = ["--epsilon", 1, "--precision", 1, "--vocabulary", "words.txt", *force]
    for output in ("counts.csv", "link.csv", "hard.csv", "words.txt", "folder/../counts.csv"):
        said = fails("privatize", "counts.csv", "-o", output, *level)
        assert "must be a different file from" in said
    assert "folder must be a file to write, got a directory" in fails("privatize", "counts.csv", "-o", "folder", *level)
    assert {path.name: path.read_bytes() for path in here.iterdir() if path.is_file()} == before
    privatized()
    (here / "same.nc").symlink_to("r.npz")
    release = (here / "r.npz").read_bytes()
    assert "must be a different file from" in fails("fit", "topics", "r.npz", "-o", "same.nc", *force)
    fit = ["fit", "topics", "r.npz", "-o", "f.nc", *force]
    for taken in ("r.npz", "f.nc"):
        assert "must be a different file from" in fails(*fit, "--checkpoint", taken)
    assert "no directory nowhere to write" in fails(*fit, "--checkpoint", "nowhere/c")
    assert (here / "r.npz").read_bytes() == release


def test_a_release_has_a_name_under_which_it_is_read(here):
    for command in (
        ["privatize", "counts.csv", "--epsilon", 1, "--precision", 1],
        ["import", "counts.csv", "--mechanism", "rounding", "--base", 1, "--source", "me"],
    ):
        assert "output must end in .npz, got noisy.csv" in fails(*command, "-o", "noisy.csv")
        assert not (here / "noisy.csv").exists()


def test_nothing_is_overwritten_unless_forced(here):
    (here / "r.npz").write_text("precious")
    assert "r.npz exists already" in fails("privatize", "counts.csv", "-o", "r.npz", "--epsilon", 1, "--precision", 1)
    assert (here / "r.npz").read_text() == "precious"
    privatized("--force")
    (here / "f.nc").write_text("precious")
    assert "f.nc exists already" in fails("fit", "topics", "r.npz", "-o", "f.nc", *SHORT)
    run("fit", "topics", "r.npz", "-o", "f.nc", *SHORT, "--force")
    assert cv.TopicModel.load("f.nc").seed_ == 1


SOURCE = Path(cv.__file__).parent
NASTY = "\x1b]0;owned\x07\x1b]52;c;Zm9v\x07\u202e\x9b[/b][link=http://a.b]\u2066"


def is_plain(text):
    return text.replace("\n", "").isprintable()


def test_lines_stay_and_escape_sequences_are_written_out(capsys):
    say(f"a\n{NASTY}")
    say(NASTY, err=True)
    said = capsys.readouterr()
    assert said.out.startswith("a\n\\x1b]0;owned\\x07")
    assert is_plain(said.out + said.err)


def test_errors_are_plain(capsys):
    @plain_errors
    def command():
        raise ValueError(f"label {NASTY}")

    with pytest.raises(BaseException, match="1"):
        command()
    assert is_plain(capsys.readouterr().err)


def test_labels_of_a_fit_are_plain_and_no_markup(capsys):
    members = pd.DataFrame(
        {
            "component": [0],
            "member": [NASTY],
            "probability": 0.5,
            "lower": 0.4,
            "upper": 0.6,
            "prevalence": 1.0,
            "support": np.nan,
        }
    )
    print_members(f"Topics {NASTY}", TOPICS, members, weighted=False)
    said = capsys.readouterr().out
    assert is_plain(said)
    assert "[link=" in said.replace("\n", "")


def test_a_release_with_nasty_labels_is_fitted_and_shown_plainly(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counts = np.random.default_rng(1).poisson(2.0, (8, 4))
    labels = [NASTY, "=1+1", "$x^", "<b>"]
    cv.privatize(counts, cv.PrivacyLevel(1, 1), column_labels=labels).save("r.npz")
    short = ["--topics", "2", "--draws", "4", "--tune", "2", "--chains", "2", "--seed", "1", "--threads", "1"]
    assert is_plain(run("fit", "topics", "r.npz", "-o", "f.nc", *short).output)
    assert is_plain(run("report", "f.nc", "-o", "f.html").output)
    page = (tmp_path / "f.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;" in page
    assert is_plain(page)
    assert is_plain(fails("fit", "blocks", "r.npz", "-o", "g.nc"))


def test_commands_print_in_no_other_way():
    printing = {
        path.name
        for path in (SOURCE / "cli").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"typer.echo", "print", "typer.secho"}
    }
    assert printing == {"output.py"}


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


OPTIONS = {
    "privatize": ["-o", "r.npz", "--epsilon", 1, "--precision", 1],
    "plan": ["-o", "out", "--method", "em", "--topics", 2, "--replicates", 2, "--rows", 4, "--level", "1:1"],
}


@pytest.mark.long
def test_what_a_table_is_warned_of_is_printed(tmp_path, capsys):
    path = tmp_path / "counts.csv"
    path.write_text("id,a\n17,1\n18,2\n20,2\n")
    assert read_table(path).values.tolist() == [[17, 1], [18, 2], [20, 2]]
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("warning: column 'id' has another value in each row, as an id does")
    assert f"counts in {path}, name it with --row-labels" in said.err.replace("\n", " ")
    assert "UserWarning" not in said.err
    assert read_table(path, row_labels="id").row_labels == ["17", "18", "20"]
    assert capsys.readouterr().err == ""
    with pytest.raises(ValueError, match="must have one column 'name'"):
        read_table(path, row_labels="name")


@pytest.mark.long
def test_commands_that_read_tables_warn_and_refuse(here):
    (here / "ids.csv").write_text("a,id\n1,17\n2,18\n0,20\n")
    (here / "saved.csv").write_text("a,Unnamed: 0\n1,0\n2,1\n0,2\n")
    for command, options in OPTIONS.items():
        said = fails(command, "saved.csv", *options)
        assert "counts in saved.csv must not include the index" in said
        assert "warning: column 'id' has another value in each row" in run(command, "ids.csv", *options).stderr
