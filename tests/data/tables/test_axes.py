import pytest

from countveil.data.tables.axes import (
    column_filled_once,
    is_all_text,
    key_column,
    long_axes,
    rates_among,
    share_columns,
)


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
        ("a,b,count 1,1,9 1,2,7 2,1,8 2,2,8", (["a", "b"], "count", [])),
        ("a,b,count x,1,9 x,2,7 y,1,8 y,2,8", (["a", "b"], "count", [])),
        ("a,b,count 1,1,9 1,2,7 2,1,8 2,3,8", ([], None, [])),  # counts, maybe of words
        ("a,b,c 1,1,9 1,2,7 2,1,8 2,2,8", ([], None, [])),
        ("a,b,2019,2020 x,u,3,4 x,v,4,5 y,u,5,6", ([], None, [])),  # of years
        ("i,a,b,m 1,x,u,7 2,x,v,4 3,y,u,5 4,y,v,6", (["a", "b"], "m", [])),  # numbers of rows
        ("i,a,b,Freq 1,x,u,7 2,x,v,4 3,y,u,5 4,y,v,6", (["a", "b"], "Freq", [])),
        ("a,b,q,m x,u,1,7 x,v,1,4 y,u,1,5 y,v,1,6", (["a", "b"], "m", [])),  # the same everywhere
        ("i,a,b 1,x,u 2,x,v 3,y,u 4,y,v", (["a", "b"], "i", [])),
        ("id,k,a,m 1,30,u,7 2,30,v,4 3,40,u,5 4,40,v,6", (["k", "a"], "m", [])),  # a code of any name
        ("k,a,m 30,u,7 30,v,4 40,u,5 40,u,6", ([], None, [])),
        ("a,b,2020K1,2020K2 x,u,3,4 x,v,4,5 y,u,5,6", ([], None, [])),
        ("a,b,Jan,Feb x,u,3,4 x,v,4,5 y,u,5,6", ([], None, [])),
        ("a,b,Befolkning_2020,Befolkning_2021 x,u,3,4 x,v,4,5 y,u,5,6", ([], None, [])),
        ("a,b,m_2020,m_2021,w_2020,w_2021 x,u,3,4,1,2 x,v,4,5,2,1 y,u,5,6,2,3", ([], None, [])),
        ("a,b,2019,2020,Total x,u,0,4,4 x,v,0,5,5 y,u,0,6,6", ([], None, [])),
        ("a,b,2019*,2020p x,u,3,4 x,v,4,5 y,u,5,6", ([], None, [])),
        ("a,b,flu1,flu2,cold x,u,3,4,9 x,v,4,5,8 y,u,5,6,7", (["a", "b"], "flu1", ["flu2", "cold"])),
        ("a,naics,n x,11----,3 x,21----,4 y,11----,5", (["a", "naics"], "n", [])),
        ("a,quarter,n x,2020K1,3 x,2020K2,4 y,2020K1,5", (["a", "quarter"], "n", [])),
        ("CODGEO,sex,P19_POP,n 75056,M,9,3 75056,F,9,4 13055,M,8,5", (["CODGEO", "sex"], "n", [])),
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
        ("a,kind 4,01067 4,10115", "kind"),
        ("kind,a 01067,01067 10115,10115", None),  # every number is as wide
        ("Area-Nr.,a 4,4 9,9", "Area-Nr."),
        ("a,Rank 4,2 4,1 9,3", "Rank"),
        ("Obs,a 1,4 2,4 3,9", "Obs"),
        ("a,Rank 4,2 4,1 9,4", None),
        ("a,Rank 4,2 4,1 9,3 17,", "Rank"),
        ("a,Rank 4, 4, 9,3 17,", None),
        ("region,a 3,4 1,9", "region"),
        ("Gemeinde,a 1,4 2,9 10,7 11,6", "Gemeinde"),
        ("a,region 4,3 9,1", None),
        ("region,a 3,4 3,9", None),
        ("Age,a 0,4 1-4,9 5+,9", "Age"),
        ("a,b 9,1 10,1 11,1 12,1", "a"),
        ("a,b 9,1 10,1 11,1", None),
        ("a,b 123¹,1 9,2", None),
        ("a,Berichtsjahr 5,2019 6,2019", "Berichtsjahr"),
        ("a,b 5,2019 9,2019 7,2019 8,2019", "b"),
        ("a,b 5,2019 6,2019 7,2019", None),
        ("place,births A,1850 B,1900 C,2010 D,2050 E,1999", None),
        ("births,a 1850,4 1900,9 2010,9 2050,3", None),
        ("com,a 75056,14 13055,9 69123,90 31555,3", "com"),
        ("com,a 301,1400 1103,900 4601,2", None),  # which is warned of
        ("com,a 75056,14 13055,9", None),
        ("com,a 7505,1400 1305,900 6912,9012 3155,3", None),  # no longer than a count
        ("CODGEO,a 01001,14 2A004,9", "CODGEO"),
        ("place,b,a x,E0701,9 y,E0702,8", "b"),
        ("place,b,a x,12p,9 y,13p,8", None),  # numbers with flags
        ("place,b,a x,0-14,9 y,15+,8", "b"),
        ("place,b,a x,0-14,9 y,15+,<5", None),  # counts in bands
        ("place,b,a x,<5,9 y,<5,8", None),
        ("a,b,c 3,0-14,9 8,15+,8", None),  # counts before it, so that it may be counts in bands
        ("date,a,b 2024,5,9 2024,7,8", "date"),
        ("CVE,name,a 1,Aguas,5 4,Baja,9", "CVE"),
        ("flu,cold,a 1,yes,5 4,yes,9", None),
        ("code,t,a 2020000,2020年,9 2020000,2020年,8", "code"),
        ("place,b,a x,2020年,9 y,2020年,8", "b"),
        ("kommunenr,a 301,1400 1103,900", "kommunenr"),
        ("a,b 5,2018-2019 6,2018-2019", "b"),
        ("b,a 01.2019,5 02.2019,6", "b"),
    ],
)
def test_years_and_codes(text, expected):
    assert key_column(columns_of(text)) == expected


def test_text_that_most_cells_lack_names_nothing():
    assert is_all_text(["Wien", "", "Linz"])
    assert not is_all_text(["Wien", "", ""])
    assert not is_all_text(["Wien", "Linz", "12"])


def test_labels_of_groups_and_labels_of_totals():
    axes = ["a", "b"]
    assert column_filled_once(columns_of("a,b x,u ,v y,u ,v"), axes) == "a"
    assert column_filled_once(columns_of("a,b x,u x,v y,u y,v ,u ,v"), axes) is None
    assert column_filled_once(columns_of("b,a u,x v,x ,x u,y v,y ,y"), axes) is None


def test_a_first_column_beside_labels_may_have_any_name():
    columns = columns_of("region,a 3,4 1,9")
    assert key_column(columns, labelled=True) is None


def test_names_of_rates_and_shares():
    names = [
        "Yes %",
        "Rate per 100,000",
        "death_rate",
        "Market share",
        "Margin of error",
        "lower 95% CI",
        "%",
        "B01001_001M",
        "Standard error",
        "Frauenanteil 2019",
        "2019 flag",
        "Arbeitslosenquote, 2019",
    ]
    assert share_columns(names) == names
    assert share_columns([f"{name} (count)" for name in names]) == []
    assert (
        share_columns(["rate", "share", "Lower Saxony", "corporate tax", "meaning of life", "per person"])
        == share_columns(["flag football", "Flag Day"])
        == []
    )


@pytest.mark.parametrize(
    ("names", "rates"),
    [
        ("Deaths Rate Births", "Rate"),
        ("Deaths Average Births", "Average"),
        ("Population_2019 Deaths", "Population_2019"),
        ("Deaths Crude-rate", "Crude-rate"),
        ("Deaths Rate,-crude", "Rate,-crude"),
        ("Deaths Deaths-per-1,000", "Deaths-per-1,000"),
        ("Deaths Lower Upper", "Lower Upper"),
        ("Lower Middle Upper", ""),
        ("Deaths Share-traders Meaning", ""),
        ("Deaths Rate-(count)", ""),
        ("Likes Comments Shares", ""),
        ("Rock Pop Jazz", ""),
        ("Deaths pop", "pop"),
        ("Deaths P19_POP", "P19_POP"),
        ("Deaths TOT_POP", "TOT_POP"),
        ("Deaths Befolkning-2020", "Befolkning-2020"),
        ("Aged-0-14 Total-population", ""),  # the total of counts
        ("P19_POP0014 P19_POP1529", ""),
        ("Poor Below-average Average Good", ""),
        ("CM CI SN", ""),
        ("<-50% 50-%-or-more Unknown", ""),
        ("0-4.9% 5-per-cent Unknown", ""),
        ("Deaths Deaths,-% 95%-CI", "Deaths,-% 95%-CI"),
        ("Deaths 2019-%", "2019-%"),
        ("Rate Ratio", ""),  # no others
        ("Population", ""),
    ],
)
def test_lines_of_rates(names, rates):
    listed = [name.replace("-", " ") for name in names.split()]
    means = [{"Lower": 1.0, "Upper": 3.0}.get(name, 2.0) for name in listed]
    found = rates_among(listed, [0.0] * len(listed), means)
    assert found == [name.replace("-", " ") for name in rates.split()]


def test_lower_and_upper_are_no_ends_of_an_interval_with_nothing_between_them():
    schools = ["Lower", "Upper", "Sixth"]
    assert rates_among(schools, [0.0] * 3, [100.0, 80.0, 25.0]) == []
    assert rates_among(schools, [0.0] * 3, [100.0, 80.0, 90.0]) == ["Lower", "Upper"]


def test_a_word_of_a_vocabulary_is_no_rate():
    assert rates_among(["rate", "aid"], [0.5, 0.0], [1.0] * 2) == []
    assert rates_among(["rate", "aid"], [0.1, 0.0], [1.0] * 2) == ["rate"]
    sparse = [0.1, 0.4, 0.5]
    assert rates_among(["rate", "aid", "war"], sparse, [1.0] * 3) == []
    assert rates_among(["rate", "aid", "war"], [0.0, *sparse[1:]], [1.0] * 3) == ["rate"]
    words = ["rate", *(f"word{i}" for i in range(20))]
    assert rates_among(words, [0.0] * 21, [1.0] * 21) == []
    assert rates_among(words[:-1], [0.0] * 20, [1.0] * 20) == ["rate"]
