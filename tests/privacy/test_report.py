import dataclasses
import hashlib
import json
import os
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countveil.privacy import PrivacyLevel, noise, report, study
from countveil.privacy._covariates import Covariate
from countveil.privacy.errors import RefusedError
from countveil.privacy.report import Report

LEVELS = [PrivacyLevel(1, 10), PrivacyLevel("0.5", "2.5")]
TOKEN = "0123456789abcdef" * 2


def planned(truncated=True, title="Surprises"):
    axes = [("word", ["surprise", "party", "five"])]
    return study.new(title, "To learn.", "a@b.org", LEVELS, axes, truncated=truncated)


CUT, SIGNED = planned(), planned(False)


def made(values=(3, 0, 41), under=CUT):
    return Report(TOKEN, LEVELS[0], list(values))


def test_a_report_reads_back_the_same(tmp_path):
    for under, values in [(CUT, (3, 0, 2**63 - 1)), (SIGNED, (-(2**62) + 1, 0, 5))]:
        path = tmp_path / "r.json"
        path.write_bytes(report.encode(made(values), under))
        assert report.load(path, under) == made(values)
        assert path.stat().st_size <= report.most_bytes(under)
    assert max(len(str(value)) for value in (report.LOWEST, report.HIGHEST)) + 1 <= 21


def test_a_report_says_no_more_than_it_must():
    said = json.loads(report.encode(made(), CUT))
    assert said.pop("sha256")
    assert said == {
        "format": "countveil-report",
        "format_version": 1,
        "study": CUT.id,
        "schema_hash": CUT.schema_hash,
        "mechanism": "two-sided geometric",
        "mechanism_version": 1,
        "level": {"epsilon": "1", "precision": "10"},
        "truncated": True,
        "participant": TOKEN,
        "reports": [3, 0, 41],
    }


def test_noise_is_on_every_count_and_cut_only_if_the_study_says_so(monkeypatch):
    asked = []

    def draw(rate, size):
        asked.append((rate, size))
        return [-5, 2, -1]

    monkeypatch.setattr(noise, "draw", draw)
    assert report.privatized([3, 0, 2**62], CUT, LEVELS[0], TOKEN).values == [0, 2, 2**62 - 1]
    assert report.privatized([3, 0, 2**62], SIGNED, LEVELS[1], TOKEN).values == [-2, 2, 2**62 - 1]
    assert asked == [(Fraction(1, 10), 3), (Fraction(1, 5), 3)]


def sealed(described):
    """What somebody makes who knows how to seal a report."""
    body = json.dumps({key: part for key, part in described.items() if key != "sha256"}).encode()[:-1]
    return body + report._SEAL % hashlib.sha256(body).hexdigest().encode()


@pytest.mark.parametrize(
    ("key", "value", "field", "rule"),
    [
        ("study", "0" * 64, "study", "must be"),
        ("schema_hash", "0" * 64, "schema_hash", "must be"),
        ("format", "countveil-study", "format", "must be"),
        ("format_version", 2, "format_version", "must be 1, got 2"),
        ("mechanism", "Laplace", "mechanism", "must be 'two-sided geometric', got 'Laplace'"),
        ("mechanism_version", 2, "mechanism_version", "must be 1, got 2"),
        ("truncated", False, "truncated", "must be True, got False"),
        (
            "level",
            {"epsilon": "1", "precision": "11"},
            "level",
            "must be one that the study offers, 10:1, 2.5:0.5, got 11:1",
        ),
        ("level", {"epsilon": "2/2", "precision": "10"}, "level.epsilon", "must be a positive reduced"),
        ("level", {"epsilon": "1"}, "level.precision", "must be there"),
        ("participant", TOKEN.upper(), "participant", f"must be 32 hexadecimal digits, got {TOKEN.upper()!r}"),
        ("participant", TOKEN[1:], "participant", "must be 32 hexadecimal digits"),
        ("reports", [1, 2], "reports", "must number 3, got 2"),
        ("reports", [1, 2, -1], "reports[2]", "must be a whole number from 0 to"),
        ("reports", [1, True, 1], "reports[1]", "must be a whole number from 0 to"),
        ("reports", [1, None, 1], "reports[1]", "must be a whole number"),
        ("reports", ["1", 2, 3], "reports[0]", "must be a whole number"),
        ("reports", [1, 2, 2**63], "reports[2]", "must be a whole number"),
        ("name", "me", "name", "must be a known field"),
        ("reports", ..., "reports", "must be there, got no such field"),
    ],
)
def test_a_report_that_breaks_a_rule_is_refused_though_its_seal_holds(key, value, field, rule):
    described = json.loads(report.encode(made(), CUT))
    described[key] = value
    if value is ...:
        del described[key]
    with pytest.raises(RefusedError) as refused:
        report.decode(sealed(described), CUT, "r.json")
    assert (refused.value.file, refused.value.field) == ("r.json", field)
    assert refused.value.rule.startswith(rule)


def test_a_signed_value_can_be_impossible_too():
    described = json.loads(report.encode(made((-1, 0, 1)), SIGNED))
    assert report.decode(sealed(described), SIGNED, "r").values == [-1, 0, 1]
    described["reports"][0] = -(2**62)
    with pytest.raises(RefusedError, match=r"reports\[0\] must be a whole number from -"):
        report.decode(sealed(described), SIGNED, "r")


def test_the_seal_covers_every_byte():
    content = report.encode(made(), CUT)
    place = content.index(b"41")
    for wrong in (content.replace(b"41", b"42"), content[:place] + b" " + content[place:], content + b"\n"):
        with pytest.raises(RefusedError, match=r"r\.json: sha256 must be the SHA-256 of all before it"):
            report.decode(wrong, CUT, "r.json")
    assert json.loads(content)["sha256"] == hashlib.sha256(content[: -len(report._SEAL % (b"0" * 64))]).hexdigest()


def test_a_report_of_another_study_is_called_so():
    content = report.encode(made(), planned(title="Other"))
    with pytest.raises(RefusedError, match="study must be"):
        report.decode(content, CUT, "r")


def test_no_more_is_read_than_a_report_can_have(tmp_path):
    path = tmp_path / "r.json"
    path.write_bytes(report.encode(made(), CUT) + b" " * report.most_bytes(CUT))
    with pytest.raises(RefusedError, match="the file must have at most 2111 bytes"):
        report.load(path, CUT)


# --- mutations: no crash, no hang, no changed value accepted ---

MUTATIONS = int(os.environ.get("COUNTVEIL_MUTATIONS", "300"))
"""Of each kind; in minutes of leisure, COUNTVEIL_MUTATIONS=10000."""
PIECES = [
    b'"',
    b",",
    b"]",
    b"[",
    b"{",
    b"}",
    b":",
    b"0",
    b"9" * 30,
    b"-",
    b"1e3",
    b"true",
    b"null",
    b"\\u0000",
    b"\xff",
]
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["change", "insert", "delete", "cut", "repeat"]),
        st.integers(0, 2**20),
        st.integers(1, 40),
        st.sampled_from(PIECES) | st.binary(min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=3,
)


def mutated(content, edits):
    for kind, place, length, piece in edits:
        at = place % (len(content) + 1)
        end = at + length
        if kind == "change":
            content = content[:at] + piece + content[at + len(piece) :]
        elif kind == "insert":
            content = content[:at] + piece + content[at:]
        elif kind == "delete":
            content = content[:at] + content[end:]
        elif kind == "cut":
            content = content[:at]
        else:
            content = content[:end] + content[at:]
    return content


def refused_or_same(read, original, content):
    """Reads mutated bytes: the same thing comes out, or a refusal with file, field and rule."""
    try:
        found = read(content)
    except RefusedError as error:
        refused = error
    else:
        assert found == original
        return True
    assert refused.file == "f"
    assert refused.field
    assert "must" in refused.rule
    assert str(refused).isprintable()
    assert len(str(refused)) < 2000
    return False


@settings(deadline=None, max_examples=MUTATIONS)
@given(EDITS)
def test_mutated_reports_are_refused(edits):
    content = report.encode(made(), CUT)
    wrong = mutated(content, edits)
    same = refused_or_same(lambda c: report.decode(c, CUT, "f"), made(), wrong)
    assert same == (wrong == content)


@settings(deadline=None, max_examples=MUTATIONS)
@given(EDITS)
def test_mutated_studies_are_refused_or_mean_the_same(edits):
    content = CUT.to_json().encode()
    refused_or_same(lambda c: study.read(c, "f"), CUT, mutated(content, edits))


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused(content):
    assert not refused_or_same(lambda c: report.decode(c, CUT, "f"), None, content)
    assert not refused_or_same(lambda c: study.read(c, "f"), None, content)


def test_the_size_of_a_report_is_that_of_its_noisy_counts_alone():
    noisy = [(3, 0, 41), (41, 0, 3), (9, 10, 1), (0, 99, 0)]  # four digits each
    sizes = {
        len(report.encode(Report(f"{number:032x}", LEVELS[0], list(values)), CUT))
        for number, values in enumerate(noisy)
    }
    longer = len(report.encode(made((123, 4567, 0)), CUT))
    assert sizes == {longer - 4}


def test_reports_of_rho_state_it_and_keep_their_sign():
    level = PrivacyLevel.zcdp("0.001")
    axes = [("word", [f"w{place}" for place in range(60)])]
    asked = study.new("S", "To learn.", "a@b.org", [level], axes, kind=study.CATEGORIES, truncated=False)
    made = report.privatized([0] * 60, asked, level, TOKEN)
    assert min(made.values) < 0 < max(made.values)
    content = report.encode(made, asked)
    stated = json.loads(content)
    assert (stated["mechanism"], stated["level"]) == ("discrete Gaussian", {"rho": "1/1000"})
    assert report.decode(content, asked, "r") == made
    with pytest.raises(RefusedError, match="r: study must be"):
        report.decode(content, SIGNED, "r")


def test_reports_of_a_study_in_waves_say_which_they_are_of():
    waves = dataclasses.replace(CUT, waves=("spring", "summer"))
    content = report.encode(made()._replace(wave="summer"), waves)
    assert json.loads(content)["wave"] == "summer"
    assert report.decode(content, waves, "r") == made()._replace(wave="summer")
    assert len(content) <= report.most_bytes(waves)
    assert report.privatized([0, 0, 0], waves.at("spring"), LEVELS[0], TOKEN).wave == "spring"
    with pytest.raises(ValueError, match="wave must be one of spring, summer, got none"):
        report.encode(made(), waves)
    with pytest.raises(RefusedError, match="wave"):
        report.decode(content.replace(b"summer", b"winter"), waves, "r")
    with pytest.raises(RefusedError, match="sha256"):
        report.decode(content.replace(b"summer", b"spring"), waves, "r")
    other = planned(title="Other")
    with pytest.raises(RefusedError, match="study"):
        report.decode(report.encode(made(), other), waves, "r")
    with pytest.raises(RefusedError, match="study"):
        report.decode(content, other, "r")
    bare = {name: value for name, value in json.loads(content).items() if name not in ("wave", "sha256")}
    with pytest.raises(RefusedError, match="wave must be one of the study's, got none"):
        report.decode(sealed(bare), waves, "r")
    bare = json.loads(report.encode(made(), CUT)) | {"wave": "summer"}
    with pytest.raises(RefusedError, match="wave must be left out in a study without waves, got"):
        report.decode(sealed(bare), CUT, "r")


def test_covariates_stand_in_the_report_in_the_clear_and_only_those_of_the_study():
    asked = Covariate("party", ("D", "the \u00d6thers" * 12)), Covariate("age", (), "18")
    under = dataclasses.replace(CUT, covariates=asked)
    stated = made()._replace(covariates=(asked[0].values[1], "123456789.123456"))
    content = report.encode(stated, under)
    assert json.loads(content)["covariates"] == {"party": asked[0].values[1], "age": "123456789.123456"}
    assert report.decode(content, under, "r") == stated
    assert len(content) <= report.most_bytes(under)
    assert report.privatized([0, 0, 0], under, LEVELS[0], TOKEN, ("D", "18")).covariates == ("D", "18")
    with pytest.raises(RefusedError, match="sha256"):
        report.decode(content.replace(b"123456789.", b"123456788."), under, "r")
    plain = {name: value for name, value in json.loads(content).items() if name != "sha256"}
    wrong = {
        "covariates must be there": None,
        "covariates must be an object": ["D", "18"],
        "covariates.age must be there": {"party": "D"},
        "covariates.sex must be a known field": {"party": "D", "age": "18", "sex": "f"},
        "covariates.party must be one of D": {"party": "X", "age": "18"},
        "covariates.age must be a number from 18": {"party": "D", "age": "17"},
        "covariates.age must be text": {"party": "D", "age": 18},
    }
    for rule, value in wrong.items():
        bare = {**plain, "covariates": value}
        if value is None:
            del bare["covariates"]
        with pytest.raises(RefusedError, match=rule):
            report.decode(sealed(bare), under, "r")
    bare = {name: value for name, value in json.loads(report.encode(made(), CUT)).items() if name != "sha256"}
    with pytest.raises(RefusedError, match="covariates must be left out in a study without them"):
        report.decode(sealed({**bare, "covariates": {}}), CUT, "r")
    with pytest.raises(ValueError, match="party"):
        report.encode(stated._replace(covariates=("X", "18")), under)
    with pytest.raises(ValueError, match="shorter"):
        report.encode(made(), under)
