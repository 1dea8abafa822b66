"""Tables of the rows, as options of ``countveil fit``: labels are as they are written."""

from pathlib import Path

from countveil.cli.covariates import Rows
from countveil.cli.dates import Times


def test_labels_of_rows_are_text_whatever_they_look_like(tmp_path):
    path = Path(tmp_path, "people.csv")
    path.write_text("who,year\nNA,1998\n007,1999\n,2000\nnull,\n")
    found = Rows("~ year", path).read()
    assert found.index.tolist() == ["NA", "007", "", "null"]
    assert found["year"].tolist()[:3] == [1998.0, 1999.0, 2000.0]
    dates = Times(path).read()
    assert dates.index.tolist() == ["NA", "007", "", "null"]
    assert dates.tolist()[:3] == ["1998", "1999", "2000"]
    assert dates.isna().tolist() == [False, False, False, True]
