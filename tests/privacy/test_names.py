"""Names of records: the table of cases that the page's script is tested with, too."""

import json
import unicodedata
from pathlib import Path

import pytest

from countveil.privacy import PrivacyLevel, study
from countveil.privacy.errors import RefusedError
from countveil.privacy.ledger import Ledger
from countveil.privacy.names import normalised

CASES = json.loads((Path(__file__).parents[1] / "study" / "page" / "cases" / "names.json").read_text())
LEVEL = PrivacyLevel(1, 10)
STUDY = study.new("Mail", "To learn.", "a@b.org", [LEVEL], [("word", ["party"])])


@pytest.mark.parametrize(("name", "wanted"), CASES)
def test_names(name, wanted):
    if wanted is None:
        with pytest.raises(RefusedError, match="name must name a record, got"):
            normalised(name)
    else:
        assert normalised(name) == wanted
        assert normalised(wanted) == wanted


def test_names_that_look_alike_are_one_record(tmp_path):
    with Ledger(tmp_path / "ledger") as ledger:
        made = ledger.obtain(STUDY, "Zo\u00eb", LEVEL, str.encode)
        again = ledger.obtain(STUDY, " zoe\u0308\u200b", LEVEL, str.encode)
        assert again.report == made.report == ledger.participant(STUDY, "ZO\u00cb").encode()
        assert len(ledger.entries("zo\u00eb")) == len(ledger.entries()) == 1


def test_a_record_of_an_older_ledger_is_found_as_it_was_spelt(tmp_path):
    """Ledgers used to keep names as they were typed; noise must not be drawn again for them."""
    name = " Zo\u00eb's diary"
    with Ledger(tmp_path / "ledger") as ledger:
        made = ledger.obtain(STUDY, "somebody", LEVEL, str.encode)
        older = ledger._digest("record", unicodedata.normalize("NFC", name))
        ledger._connection.execute("UPDATE releases SET record = ?", (older,))
        assert ledger.obtain(STUDY, name, LEVEL, str.encode).report == made.report
        assert ledger.participant(STUDY, name) == ledger._digest("participant", STUDY.id, name)[:16].hex()
        assert ledger.find(STUDY, "zo\u00eb's diary", LEVEL) is None
