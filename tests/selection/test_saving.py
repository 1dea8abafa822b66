"""Files of finished fits."""

import numpy as np
import pytest

from countveil.selection.saving import Scored, read, write

DONE = {
    (0, 0): Scored(np.array([-1.0, -2.0]), 1.5),
    (0, 1): Scored(np.full(3, np.nan), 0.5, "failed"),
    (1, 1): Scored(np.array([-0.5, -0.25, -1.0]), 2.5),
}
SIZES = {(0, 0): 2, (0, 1): 3, (1, 0): 2, (1, 1): 3}


def test_what_is_written_is_read_except_what_failed(tmp_path):
    path = tmp_path / "kept.npz"
    write(path, "mark", DONE)
    found = read(path, "mark", SIZES)
    assert list(found) == [(0, 0), (1, 1)]
    for place, scored in found.items():
        np.testing.assert_array_equal(scored.scores, DONE[place].scores)
        assert scored.seconds == DONE[place].seconds
    assert [each.name for each in tmp_path.iterdir()] == ["kept.npz"]


def test_another_comparison_s_file_is_refused(tmp_path):
    write(tmp_path / "kept.npz", "mark", DONE)
    with pytest.raises(
        ValueError, match=r"kept.npz must be of the same data, models and seed, got that of another"
    ):
        read(tmp_path / "kept.npz", "other", SIZES)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no archive", "must be a file that compare wrote"),
        ({"fingerprint": "mark"}, "must be a file that compare wrote"),
        ({"format": 99, "fingerprint": "mark"}, "must be a file that compare wrote, got: format 99, not 2"),
        (
            {"format": 2, "fingerprint": "mark", "scores_0_0": np.zeros(3)},
            "must hold the scores of whole folds",
        ),
        (
            {"format": 2, "fingerprint": "mark", "scores_0_0": np.array([0.0, np.inf])},
            "must hold the scores of whole folds",
        ),
        ({"format": 2, "fingerprint": "mark", "scores_0_0": np.zeros(2, int)}, "the scores of whole folds"),
    ],
)
def test_damaged_files_are_refused(tmp_path, content, message):
    path = tmp_path / "kept.npz"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.savez(path, **content)
    with pytest.raises(ValueError, match=message):
        read(path, "mark", SIZES)
