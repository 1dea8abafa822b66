import pytest

from countveil.cli.options import read_level
from countveil.privacy import PrivacyLevel


def test_a_level_is_read_as_exact_decimals():
    assert read_level("2.5:0.1") == PrivacyLevel("0.1", "2.5")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("10", "level must be N:EPSILON, such as 10:1, got '10'"),
        ("0:1", "precision must be positive, got 0"),
        ("1:", "epsilon must be a decimal number, got ''"),
    ],
)
def test_what_is_no_level_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        read_level(text)
