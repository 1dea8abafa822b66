"""``countveil fit topics --seeds``: tables and JSON of seeded words, what is said of them, and what is refused."""

import inspect
import json
from pathlib import Path

import pytest

import countveil as cv
from countveil.cli.seeds import USUAL_WEIGHT, Seeding
from tests.commands import SHORT, fails, privatized, run

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
    assert fit.seeds == {"economy": ["word1", "word3"], "health": ["word2", "cure"]}
    assert (fit.seed_weight, fit.names_of()) == (2.0, {0: "economy", 1: "health"})


def test_a_table_and_json_say_the_same(tmp_path):
    table, objects = tmp_path / "seeds.csv", tmp_path / "seeds.JSON"
    table.write_text(TABLE)
    objects.write_text(json.dumps({"economy": ["word1", "word3"], "health": ["word2"]}))
    assert Seeding(table).read() == Seeding(objects).read()
    assert list(Seeding(table).read()) == ["economy", "health"]
    assert Seeding().read() is None


def test_the_usual_weight_is_that_of_the_model():
    assert inspect.signature(cv.TopicModel).parameters["seed_weight"].default == USUAL_WEIGHT


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
