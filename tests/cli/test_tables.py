import pytest

from countveil.cli.tables import read_table
from tests.commands import fails, run

pytestmark = pytest.mark.long

OPTIONS = {
    "privatize": ["-o", "r.npz", "--epsilon", 1, "--precision", 1],
    "plan": ["-o", "out", "--method", "em", "--topics", 2, "--replicates", 2, "--rows", 4, "--level", "1:1"],
}


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


def test_commands_that_read_tables_warn_and_refuse(here):
    (here / "ids.csv").write_text("a,id\n1,17\n2,18\n0,20\n")
    (here / "saved.csv").write_text("a,Unnamed: 0\n1,0\n2,1\n0,2\n")
    for command, options in OPTIONS.items():
        said = fails(command, "saved.csv", *options)
        assert "counts in saved.csv must not have their index among them" in said
        assert (
            "warning: column 'id' has another value in each row" in run(command, "ids.csv", *options).stderr
        )
