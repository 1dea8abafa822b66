import pytest

from countveil.data.tables.axes import column_filled_once, key_column, long_axes


def columns_of(text):
    names, *rows = [line.split(",") for line in text.split()]
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("age,year,value 0,1996,87 0,1997,72 1,1996,3", (["age", "year"], "value", [])),
        ("a,ages,popn,injuries x,0-4,90,3 x,5-9,80,4 y,0-4,70,5", (["a", "ages"], "injuries", [])),
        ("a,when,page_id,views x,2019,7,3 x,2020,8,4 y,2019,7,5", (["a", "when"], "views", [])),
        ("a,b,n x,u,3 x,v,4 y,u,5 y,u,6", (["a", "b"], "n", [])),  # one cell twice
        ("a,b,m x,u,3 x,v,4 y,u,5 y,u,6", ([], None, [])),
        ("place,flu,cold A,3,4 B,5,6 C,3,4", ([], None, [])),
        ("place,a,b A,1-9,10-50 B,1-9,1-9 C,10-50,7", ([], None, [])),
        ("doc,age,n,state,cat,dog,hen A,1,2,0,3,0,0 B,1,0,0,2,1,1 C,0,2,3,4,4,1", ([], None, [])),  # of words
    ],
)
def test_axes_and_reports(text, expected):
    assert long_axes(columns_of(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("place,Jahr,a x,2020,3 y,2020,4", "Jahr"),
        ("place,year,a x,3,3 y,2,4", None),  # a word of a vocabulary
        ("place,code,a x,3,3 y,2,4", "code"),
        ("place,code,a x,3,3 y,3,4", None),
        ("a,b 2001,2 1999,3", "a"),
        ("b,a 2,2001 3,1999", None),
    ],
)
def test_years_and_codes(text, expected):
    assert key_column(columns_of(text)) == expected


def test_labels_of_groups_and_labels_of_totals():
    axes = ["a", "b"]
    assert column_filled_once(columns_of("a,b x,u ,v y,u ,v"), axes) == "a"
    assert column_filled_once(columns_of("a,b x,u x,v y,u y,v ,u ,v"), axes) is None
    assert column_filled_once(columns_of("b,a u,x v,x ,x u,y v,y ,y"), axes) is None
