import pytest

from countveil.files import replacing


def test_a_file_takes_its_name_when_it_is_whole(tmp_path):
    path = tmp_path / "table.csv"
    with replacing(path) as temporary:
        assert temporary.suffix == ".csv"
        temporary.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")

    def break_off():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        break_off()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
