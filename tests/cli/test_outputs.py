from pathlib import Path

import pytest

import countveil as cv
from countveil.cli.outputs import check_folder, write_text
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
    with pytest.raises(NotADirectoryError, match="file must be a directory for the files"):
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
        assert "must be a file of its own, got" in said
    assert "folder must be a file to write, got a directory" in fails(
        "privatize", "counts.csv", "-o", "folder", *level
    )
    assert {path.name: path.read_bytes() for path in here.iterdir() if path.is_file()} == before
    privatized()
    (here / "same.nc").symlink_to("r.npz")
    release = (here / "r.npz").read_bytes()
    assert "must be a file of its own" in fails("fit", "topics", "r.npz", "-o", "same.nc", *force)
    fit = ["fit", "topics", "r.npz", "-o", "f.nc", *force]
    for taken in ("r.npz", "f.nc"):
        assert "must be a file of its own" in fails(*fit, "--checkpoint", taken)
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
    assert "r.npz exists already" in fails(
        "privatize", "counts.csv", "-o", "r.npz", "--epsilon", 1, "--precision", 1
    )
    assert (here / "r.npz").read_text() == "precious"
    privatized("--force")
    (here / "f.nc").write_text("precious")
    assert "f.nc exists already" in fails("fit", "topics", "r.npz", "-o", "f.nc", *SHORT)
    run("fit", "topics", "r.npz", "-o", "f.nc", *SHORT, "--force")
    assert cv.TopicModel.load("f.nc").seed_ == 1
