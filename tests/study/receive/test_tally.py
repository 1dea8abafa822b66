from countveil.privacy.errors import RefusedError
from countveil.study.receive.tally import INVALID, MANY, OTHER_STUDY, REASONS, Tally, progress, reason_of


def test_all_counts_are_in_one_line():
    counts = Tally()
    assert counts.line() == "0 reports; 0 refused"
    counts = Tally(1999, 3000)
    counts.accept()
    for reason in (MANY, MANY, INVALID):
        counts.refuse(reason)
    assert counts.line() == (
        "2,000 of 3,000 reports (67%); 3 refused: 2 too many from one address, 1 not a valid report"
    )
    assert progress(12_345, None) == "12,345 reports"


def test_what_a_sender_writes_is_no_reason():
    for field in ("the file", "reports[7]", "a key of the sender's"):
        assert reason_of(RefusedError("the report", field, "must be")) == INVALID
    assert reason_of(RefusedError("the report", "study", "must be")) == OTHER_STUDY
    assert set(Tally().refused) == set(REASONS)
