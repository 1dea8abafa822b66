import pytest

from countveil.common.names import joined, names_in


@pytest.mark.parametrize(
    "names", [["age"], ["age", "sex"], ["Age, in years", "sex"], ['a "b", c', "d,"], ["x y", "5' 6"], ["µ, ü", "-"]]
)
def test_names_come_back_from_one_text(names):
    assert names_in(joined(names)) == names


@pytest.mark.parametrize(
    ("text", "names"),
    [("age,sex", ["age", "sex"]), (" age , sex ", ["age", "sex"]), ('"Age, in years", sex', ["Age, in years", "sex"])],
)
def test_spaces_around_names_are_left_out(text, names):
    assert names_in(text) == names


@pytest.mark.parametrize("text", ['"age,sex', "age\nsex", '"age" years,sex', ""])
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError, match="one with a comma must be in double quotes"):
        names_in(text)
