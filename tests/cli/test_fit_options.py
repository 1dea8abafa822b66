"""Tables of the rows, as options of ``countveil fit``: labels are as they are written."""

import json
from pathlib import Path

import pytest

import countveil as cv
from countveil.cli.fit_options import USUAL_WEIGHT, Rows, Seeding, Times
from countveil.data.dates import read_dates
from countveil.fit import known_topics
from tests.commands import SHORT, fails, privatized, run


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


@pytest.mark.parametrize(
    ("day_first", "names", "steps"),
    [(True, ["2019-04-03", "2019-04-04", "2019-04-05"], [0, 2]), (False, ["2019Q1", "2019Q2"], [0, 1])],
)
def test_the_order_of_day_and_month_may_be_stated(tmp_path, day_first, names, steps):
    table = tmp_path / "times.csv"
    table.write_text("label,date\na,3/4/2019\nb,5/4/2019\n")
    with pytest.raises(ValueError, match=r"got '3/4/2019': .* \(--day-first or --month-first\)"):
        read_dates(Times(table).read(), ["a", "b"], 2)
    found = read_dates(Times(table, day_first).read(), ["a", "b"], 2)
    assert (list(found.names), found.step.tolist()) == (names, steps)


def test_other_labels_stay_as_they_are(tmp_path):
    table = tmp_path / "times.csv"
    table.write_text("label,date\na,2019-11\nb,\n")
    assert Times(table, True).read().isna().tolist() == [False, True]
    table.write_text("label,date\na,2019-11\nb,2019-12\n")
    assert Times(table, True).read().tolist() == ["2019-11", "2019-12"]
    with pytest.raises(ValueError, match="--day-first and --month-first must come with --time"):
        Times(None, True).read()


GIVEN = "fit", "topics", "r.npz", "-o", "f.nc", *SHORT, "--chains", "1"
TABLE = 'topic,word,note\neconomy,word1,\n health , word2 ,x\neconomy,"word3",\n'


def test_the_first_topics_are_those_of_a_table(here):
    privatized()
    Path("seeds.csv").write_text("\ufeff" + TABLE + "health,cure,\n", encoding="utf-8")
    found = run(*GIVEN, "--seeds", "seeds.csv", "--seed-weight", "2")
    assert "0 economy" in found.stdout
    assert "1 health" in found.stdout
    assert "Left out of the seeds of health, since the data do not have them: cure." in found.stdout
    fit = cv.TopicModel.load("f.nc")
    assert fit.seeds == {"economy": {"word1": 2.0, "word3": 2.0}, "health": {"word2": 2.0, "cure": 2.0}}
    assert fit._reader.names_of() == {0: "economy", 1: "health"}


def test_a_table_and_json_say_the_same(tmp_path):
    table, objects = tmp_path / "seeds.csv", tmp_path / "seeds.JSON"
    table.write_text(TABLE)
    objects.write_text(json.dumps({"economy": ["word1", "word3"], "health": ["word2"]}))
    assert Seeding(table).read() == Seeding(objects).read()
    assert list(Seeding(table).read()) == ["economy", "health"]
    assert Seeding().read() is None
    assert Seeding(table).read() == {"economy": ["word1", "word3"], "health": ["word2"]}
    twos = {"economy": {"word1": 2.0, "word3": 2.0}, "health": {"word2": 2.0}}
    assert Seeding(table, 2.0).read() == Seeding(objects, 2.0).read() == twos


@pytest.mark.parametrize("words", [["a", "a"], ["a", 3], "a", {"a": 7.0}, [["a"]]])
def test_what_is_no_list_of_words_is_left_to_the_model_and_so_are_weights(tmp_path, words):
    objects = tmp_path / "seeds.json"
    objects.write_text(json.dumps({"economy": words}))
    assert Seeding(objects, 2.0).read() == {"economy": words}


def test_the_usual_weight_is_that_of_the_model():
    assert known_topics.WEIGHT == USUAL_WEIGHT


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("s.csv", "economy,tax\n", "s.csv must hold seeds: must have the columns topic and word, got"),
        ("s.csv", "", "must have the columns topic and word, got none"),
        ("s.csv", "topic,word\neconomy,tax\nhealth,\n", "in every line, got line 3 without"),
        ("s.csv", "topic,word\neconomy\n", "in every line, got line 2 without"),
        ("s.json", "[1]", "s.json must hold seeds: must be an object such as"),
        ("s.json", "{", "s.json must hold seeds: "),
        ("s.json", '{"economy": "tax"}', "seeds of 'economy' must be a list of words"),
        ("s.csv", "topic,word\neconomy,nowhere\n", "seeds of 'economy' must have a word that the data have"),
    ],
)  # fmt: skip
def test_what_a_file_of_seeds_may_not_be(here, name, text, said):
    privatized()
    Path(name).write_text(text)
    assert said in " ".join(fails(*GIVEN, "--seeds", name).split())


def test_a_file_that_is_not_there_is_named(here):
    privatized()
    assert "seeds.csv" in fails(*GIVEN, "--seeds", "seeds.csv")
