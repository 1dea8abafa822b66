"""What a page is made of: its policy, its strings, its study, and nothing from elsewhere."""

import base64
import hashlib
import html
import json
import re
from fractions import Fraction

import jsonschema
import pytest

from countveil.privacy import PrivacyLevel, counting, promise, study, wording
from countveil.privacy.errors import RefusedError
from countveil.study.page import page, strings, tables
from countveil.study.page.write import SCRIPTS
from tests.study.page.scripts import HERE

ODD = "<b>\"&'</b></script><script>alert(1)</script>{{data}} {epsilon}"


def planned(title="Mail", **more):
    axes = [("word", ["party", "surprise"])]
    return study.new(title, "To learn.", "a@b.org", [PrivacyLevel(1, 10)], axes, **more)


def policy_of(text):
    return dict(
        rule.split(" ", 1) for rule in html.unescape(re.search(r'Policy" content="([^"]*)"', text)[1]).split("; ")
    )


def test_the_policy_allows_the_two_hashed_parts_and_no_more():
    text = page(planned())
    rules = policy_of(text)
    assert rules["default-src"] == rules["connect-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        (part,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert not re.search(r'(src|href)=(?!"#)', text.partition("<script")[0])
    assert "https://" not in text


def test_an_address_is_all_that_is_added():
    address = "https://study.example.org:8443/a/reports"
    rules, without = policy_of(page(planned(address=address))), policy_of(page(planned()))
    assert rules.pop("connect-src") == address
    without.pop("connect-src")
    assert rules == without


@pytest.mark.parametrize(
    "address",
    ["", "http://example.org/", "https://a.org/?x=1", "https://a.org/#x", "https://u:p@a.org/", "https://a.org/; x",
     "javascript:alert(1)", "https://*", "https://a.org/a b", "'none'", "https://a.org\n", "https://ä.org/"],
)  # fmt: skip
def test_addresses_that_a_policy_cannot_name_are_refused(address):
    with pytest.raises(RefusedError, match="address must be an https address"):
        planned(address=address)


def test_an_address_is_part_of_the_study():
    made = planned(address="https://a.org/")
    assert study.read(made.to_json().encode(), "it") == made
    assert made.id != planned().id
    assert "can send reports to https://a.org/" in made.describe()
    described = json.loads(made.to_json())
    referee = jsonschema.Draft202012Validator(json.loads(study.SCHEMA_FILE.read_text()))
    referee.validate(described)
    assert not referee.is_valid(described | {"address": "http://a.org/"})


def test_what_a_study_says_is_text_and_never_markup():
    text = page(planned(ODD))
    assert text.count("<script") == page(planned()).count("<script") == 2
    assert html.escape(ODD) in text
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert data["title"] == ODD


def test_every_string_is_used_and_every_use_has_a_string():
    own = strings()
    scripts = "".join((HERE / name).read_text() for name in SCRIPTS)
    template = (HERE / "page.html").read_text()
    quoted = set(re.findall(r'"([a-z_]+)"', scripts))
    made = {f"level_{name}" for name in ("strong", "moderate", "weak", "nothing")}
    made |= {*wording.before(False), *wording.before(True)}
    made |= {"unit_words_one", "unit_counts_one", *(key for _, key in counting.SIGNATURES)}
    used = quoted | made | set(re.findall(r"\{\{([a-z_]+)\}\}", template))
    assert set(own) <= used
    asked = set(re.findall(r'(?:say|Refused)\("([a-z_]+)"', scripts)) | made
    assert asked <= set(own)


def test_how_many_times_as_likely():
    told = {
        1: "2.72",
        5: "148",
        "6.9": "992",
        7: "1\u202f100",
        10: "22\u202f000",
        20: "485\u202f000\u202f000",
        21: "e^21",
    }
    assert {felt: tables.times(Fraction(felt)) for felt in told} == told


def test_levels_are_shown_by_what_their_noise_does():
    shown = tables.levels(planned())[0]
    assert (shown["positive"], shown["within"], shown["strength"]) == ("47.5", 30, "strong")
    assert shown["promise"] == PrivacyLevel(1, 10).describe()


@pytest.mark.parametrize(("epsilon", "precision"), [(1, 10), (5, "2.5"), ("0.4", "0.1"), (20, 1), (100, 100)])
def test_levels_are_said_in_the_words_of_the_command(epsilon, precision):
    level = PrivacyLevel(epsilon, precision)
    made = study.new("Mail", "To learn.", "a@b.org", [level], [("word", ["party"])])
    (shown,), said = tables.levels(made), strings()
    unit = said["unit_words_one" if shown["amount"] == "1" else "unit_words"]
    sentence = said[f"level_{shown['strength']}"].format(amount=shown["amount"], unit=unit, guesses=shown["guesses"])
    assert promise.sentence(level.epsilon, level.precision, "word").startswith(sentence)
    if not level.hides():
        assert f"in at most {shown['guesses']} of cases" in level.describe()
    assert f"{shown['unchanged']} of counts" in made.meanings()[0]
    assert made.meanings()[0].startswith(sentence)
    assert wording.BOTH.items() <= said.items()


@pytest.mark.parametrize("rho", ["0.125", "2", "50", "1000", "1e-20"])
def test_levels_of_rho_are_said_in_the_words_of_the_command(rho):
    level = PrivacyLevel.zcdp(rho)
    made = study.new("Mail", "To learn.", "a@b.org", [level], [("word", ["party"])], truncated=False)
    (shown,), said = tables.levels(made), strings()
    sentence = said[f"level_{shown['strength']}"].format(
        amount=shown["amount"], unit=said["unit_words_one"], guesses=shown["guesses"]
    )
    assert level.sentence("word") == f"{sentence} ({said['level_rho'].format(rho=shown['shortRho'])})"
    assert made.meanings()[0].startswith(sentence)
    assert (shown["promise"], Fraction(shown["variance"])) == (level.describe(), level.variance)
    assert f"in at most {shown['guesses']} of cases" in level.describe()
    assert f"gives epsilon = {shown['epsilonAtDelta']} with" in level.describe()
    assert shown["party"]["guesses"] == promise.percent(promise.least_wrong_guesses(50 * level.rho))
    stated = [said[key].format(one="word", many="words") for key in wording.before(of_rho=True)]
    assert wording.statements("word", of_rho=True)[1:3] == stated


def test_a_page_of_rho_is_smaller_than_one_with_tables_of_noise():
    levels = [PrivacyLevel.zcdp("0.125"), PrivacyLevel.zcdp("1e-20")]
    axes = [("word", ["party", "surprise"])]
    assert len(page(study.new("Mail", "To learn.", "a@b.org", levels, axes, truncated=False))) < len(page(planned()))


def test_a_translation(tmp_path):
    other = tmp_path / "de.json"
    german = strings() | {"language": "de", "count_button": "Zählen & <gut>"}
    other.write_text(json.dumps(german), encoding="utf-8")
    text = page(planned(), strings(other))
    assert '<html lang="de">' in text
    assert ">Zählen &amp; &lt;gut&gt;</button>" in text
    for change, rule in [
        ({"means_zero": "Ohne Zahl."}, r"means_zero must be text with \{positive\}, .* got 'Ohne Zahl.'"),
        ({"count_button": "{x}"}, r"count_button must be text with no \{places\}"),
        ({"count_button": " "}, "count_button"),
        ({"language": "German!"}, "language must be a language tag, .* got 'German!'"),
        ({"nonsense": "x"}, "must be a known field"),
        ({"count_button": 3}, "must be text"),
    ]:
        other.write_text(json.dumps(german | change), encoding="utf-8")
        with pytest.raises(RefusedError, match=rule):
            strings(other)
    del german["count_button"]
    other.write_text(json.dumps(german), encoding="utf-8")
    with pytest.raises(RefusedError, match="count_button must be there"):
        strings(other)


def test_a_study_in_waves_has_no_page():
    with pytest.raises(RefusedError, match=r"waves must be left out to have a page, got .: participants"):
        page(planned(waves=["spring", "summer"]))
