import json
from copy import deepcopy
from fractions import Fraction

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countveil.privacy import PrivacyLevel, Release, counting, study
from countveil.privacy._covariates import Covariate
from countveil.privacy.errors import RefusedError

LEVELS = [PrivacyLevel(1, 10), PrivacyLevel("0.5", "2.5")]
GOLDEN = "f03c3387cbebb739a76bbad8e8bf8250bbe6a4d15667259a86a208ddb1bd2246"


def words(**changes):
    parts = {
        "title": "Surprises",
        "purpose": "To learn what e-mail is about.\nNobody reads yours.",
        "contact": "someone@example.org",
        "levels": LEVELS,
        "axes": [("word", ["surprise", "party", "it's", "café"])],
    }
    return study.new(**(parts | changes))


def categories():
    axes = [("receiver", ["ann", "bob the 2nd"]), ("day", ["Mon", "Tue", "Wed"])]
    return words(axes=axes, kind="categories", truncated=False)


@pytest.mark.parametrize("made", [words(), categories()])
def test_a_study_reads_back_the_same(tmp_path, made):
    path = tmp_path / "study.json"
    path.write_text(made.to_json())
    again = study.load(path)
    assert again == made
    assert again.id == made.id
    shape = (1, *made.shape)
    release = Release(zeros(shape), LEVELS[0], True, (None, *made.labels))
    assert release.schema_hash == made.schema_hash


def zeros(shape):
    return [0] * shape[0] if len(shape) == 1 else [zeros(shape[1:]) for _ in range(shape[0])]


def test_the_words_of_version_2_are_frozen():
    """Participants refuse a study whose words differ from theirs: another wording is another format version."""
    assert words().id == GOLDEN


def test_sizes_and_levels_in_words():
    assert (words().cells, categories().cells, categories().shape) == (4, 6, (2, 3))
    assert (
        words()
        .meanings()[0]
        .startswith(
            "Strong protection: whether you added or left out up to 10 words can be guessed "
            "right in at most 69.7% of cases (50% without the report). "
            "(N = 10, epsilon = 1; alpha 0.905; 5.0% of counts stay as they are; a true zero"
        )
    )
    assert "(50% without the report). (N = 2.5, epsilon = 0.5;" in categories().meanings()[1]
    tenth = words(levels=[PrivacyLevel("0.2", "0.1")]).meanings()[0]
    assert tenth.startswith("Moderate protection: whether you added or left out up to 1 word can be guessed right")
    assert (
        words(levels=[PrivacyLevel(4, 1)])
        .meanings()[0]
        .startswith("Weak protection: whether you added or left out 1 word")
    )
    assert words().levels[0].alpha == pytest.approx(0.9, abs=0.005)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"title": ""}, "title"),
        ({"title": " x"}, "title"),
        ({"title": "x" * 201}, "title"),
        ({"purpose": "red \x1b[31m"}, "purpose"),
        ({"contact": "a\u202eb"}, "contact"),
        ({"levels": []}, "levels"),
        ({"levels": [PrivacyLevel(1, 10), PrivacyLevel(1, 10)]}, "levels"),
        ({"levels": [PrivacyLevel(1, 2**41)]}, "levels[0]"),
        ({"levels": [PrivacyLevel(1, 1), PrivacyLevel(1001, 1)]}, "levels[1]"),
        ({"kind": "letters"}, "schema.kind"),
        ({"axes": [("word", [])]}, "schema.axes[0].labels"),
        ({"axes": [("word", ["a", "b", "a"])]}, "schema.axes[0].labels[2]"),
        ({"axes": [("", ["a"])]}, "schema.axes[0].name"),
        ({"axes": [("word", ["a"]), ("other", ["b"])]}, "schema.axes"),
        ({"axes": [("a", ["x"])] * 9, "kind": "categories"}, "schema.axes"),
        ({"axes": [(n, [str(i) for i in range(1500)]) for n in "ab"], "kind": "categories"}, "schema.axes"),
        ({"axes": [("word", ["Party", "don't", "e-mail", "x'"])]}, "schema.axes[0].labels"),
    ],
)
def test_a_study_that_breaks_a_rule_is_not_made(changes, field):
    with pytest.raises(RefusedError) as refused:
        words(**changes)
    assert refused.value.field == field
    assert str(refused.value).startswith(f"the study: {field} must ")


def test_words_that_are_never_counted_are_named():
    with pytest.raises(RefusedError, match=r"got 2 that it never makes, such as 'Party', 'e-mail'\. Text is"):
        words(axes=[("word", ["Party", "surprise", "e-mail"])])


CHANGES = [
    ("format", "study", "format"),
    ("format_version", 1, "format_version"),
    ("format_version", 3, "format_version"),
    ("format_version", True, "format_version"),
    ("format_version", "1", "format_version"),
    ("mechanism", {"name": "Laplace", "version": 1}, "mechanism.name"),
    ("mechanism", {"name": "two-sided geometric", "version": 2}, "mechanism.version"),
    ("mechanism", {"name": "two-sided geometric", "version": 1, "seed": 3}, "mechanism.seed"),
    ("mechanism", None, "mechanism"),
    ("reports", "rounded", "reports"),
    ("levels", {}, "levels"),
    ("levels", ["strong"], "levels[0]"),
    ("levels", [{"epsilon": "1", "precision": "10"}], "levels[0].meaning"),
    ("levels", [{"epsilon": 1, "precision": "10", "meaning": ""}], "levels[0].epsilon"),
    ("levels", [{"epsilon": "0", "precision": "10", "meaning": ""}], "levels[0].epsilon"),
    ("levels", [{"epsilon": "2/4", "precision": "10", "meaning": ""}], "levels[0].epsilon"),
    ("levels", [{"epsilon": "1", "precision": "1e1", "meaning": ""}], "levels[0].precision"),
    ("levels", [{"epsilon": "1", "precision": "10", "meaning": "Perfect secrecy."}], "levels[0].meaning"),
    ("schema", {"kind": "words"}, "schema.axes"),
    ("schema", [], "schema"),
    ("id", "0" * 64, "id"),
    ("title", "Another", "id"),
    ("title", 5, "title"),
    ("added", 1, "added"),
    ("", 1, "''"),
    ("purpose", ..., "purpose"),
]
BY_US_ALONE = {"id", "levels[0].meaning", "levels[0].epsilon"}
"""Fields with rules that JSON Schema cannot say: hashes, what a level means, reduced fractions."""


def changed(key, value):
    described = json.loads(words().to_json())
    described[key] = value
    if value is ...:
        del described[key]
    return described


@pytest.mark.parametrize(("key", "value", "field"), CHANGES)
def test_a_file_that_breaks_a_rule_is_refused(tmp_path, key, value, field):
    path = tmp_path / "study.json"
    path.write_text(json.dumps(changed(key, value)))
    with pytest.raises(RefusedError) as refused:
        study.load(path)
    assert (refused.value.file, refused.value.field) == (str(path), field)


@pytest.mark.parametrize(
    ("key", "value", "got"),
    [
        ("id", "0" * 64, "of all other fields, got '00000000"),
        ("title", "a\tb", "without blank ends, got 'a\\tb'"),
        ("title", "a" * 5000, "without blank ends, got 5000 characters"),
        ("address", "http://a.org", "or http on localhost, got 'http://a.org'"),
        ("levels", [{"epsilon": "1", "precision": "10", "meaning": "Perfect secrecy."}], "got 'Perfect secrecy.'"),
        ("schema", json.loads(words().to_json())["schema"] | {"hash": "1" * 64}, "got '11111111"),
    ],
)
def test_a_refusal_shows_what_stood_in_the_file(key, value, got):
    with pytest.raises(RefusedError) as refused:
        study.read(json.dumps(changed(key, value)).encode(), "s")
    assert got in refused.value.rule


def test_a_study_in_older_words_is_refused_with_what_to_do():
    with pytest.raises(RefusedError, match=r"^s: format_version must be 2, got 1, .*with countveil study new$"):
        study.read(json.dumps(changed("format_version", 1)).encode(), "s")


def test_hashes_and_labels_are_checked():
    for change, field in [
        (lambda schema: schema["axes"][0]["labels"].reverse(), "schema.hash"),
        (lambda schema: schema["axes"][0]["labels"].append("veil"), "schema.hash"),
        (lambda schema: schema["axes"][0]["labels"].append(3), "schema.axes[0].labels[4]"),
        (lambda schema: schema["axes"][0]["labels"].append("a\tb"), "schema.axes[0].labels[4]"),
        (lambda schema: schema.update(hash="0" * 64), "schema.hash"),
        (lambda schema: schema.update(rule="As you like it."), "schema.rule"),
        (lambda schema: schema["axes"][0].update(name="mot"), "id"),
    ]:
        described = json.loads(words().to_json())
        change(described["schema"])
        with pytest.raises(RefusedError) as refused:
            study.read(json.dumps(described).encode(), "s")
        assert refused.value.field == field


def test_the_published_schema_agrees():
    described = json.loads(study.SCHEMA_FILE.read_text())
    jsonschema.Draft202012Validator.check_schema(described)
    referee = jsonschema.Draft202012Validator(described)
    for made in (words(), categories()):
        referee.validate(json.loads(made.to_json()))
    for key, value, field in CHANGES:
        fits = referee.is_valid(changed(key, value))
        assert not fits or field in BY_US_ALONE, field


def test_the_schema_names_every_field_that_a_study_has():
    described = json.loads(study.SCHEMA_FILE.read_text())
    written = json.loads(words().to_json())
    assert (
        set(described["properties"]) - {"address", "waves", "covariates"} == set(described["required"]) == set(written)
    )
    assert set(described["properties"]["schema"]["oneOf"][0]["properties"]) == set(written["schema"])


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"", "must be JSON in UTF-8"),
        (b"\xff{}", "must be JSON in UTF-8"),
        (b"[" * 200_000, "must be JSON in UTF-8"),
        (b"[]", "must hold one JSON object, got list"),
        (b'{"format": 1, "format": 1}', "must be given once, got it twice"),
        (b'{"format": 1.0}', "must hold whole numbers and text, got '1.0'"),
        (b'{"format": NaN}', "must hold whole numbers and text, got 'NaN'"),
        (b'{"format": ' + b"9" * 5000 + b"}", "must be JSON in UTF-8"),
    ],
)
def test_what_is_no_json_object_is_refused(content, rule):
    with pytest.raises(RefusedError) as refused:
        study.read(content, "s")
    assert rule in refused.value.rule
    assert len(str(refused.value)) < 200


def test_only_files_of_a_bearable_size_are_read(tmp_path, monkeypatch):
    import os

    with pytest.raises(FileNotFoundError):
        study.load(tmp_path / "none")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(RefusedError, match="must be a regular file, got a pipe"):
            study.load(path)
    monkeypatch.setattr(study, "MAX_BYTES", 100)
    (tmp_path / "large").write_text(words().to_json())
    with pytest.raises(RefusedError, match="must have at most 100 bytes, got a file of"):
        study.load(tmp_path / "large")


TEXT = st.text(st.characters(codec="utf-8"), max_size=40)


@settings(deadline=None, max_examples=200)
@given(st.lists(TEXT.filter(bool), min_size=1, max_size=6, unique=True), TEXT)
def test_any_study_is_kept_or_refused(labels, title):
    try:
        made = words(axes=[("label", labels)], kind="categories", title=title)
    except RefusedError:
        assert (
            any(not s.isprintable() or s != s.strip() for s in labels)
            or not title.isprintable()
            or (title != title.strip() or not title)
        )
        return
    assert study.read(made.to_json().encode(), "s") == made
    described = deepcopy(json.loads(made.to_json()))
    described["schema"]["axes"][0]["labels"][0] += "x"
    with pytest.raises(RefusedError):
        study.read(json.dumps(described).encode(), "s")


# --- counting ---


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Surprise, party!", ["surprise", "party"]),
        ("it's It\u2019s 'quoted' rock'n'roll", ["it's", "it's", "quoted", "rock'n'roll"]),
        ("a''b x''' '' '", ["a", "b", "x"]),
        ("e-mail 3.14 snake_case x2", ["e", "mail", "3", "14", "snake", "case", "x2"]),
        ("cafe\u0301 CAFÉ", ["café", "café"]),
        ("हिन्दी ΑΣ", ["हिन्दी", "ας"]),
        ("\ufeff\x00\n\t", []),
    ],
)
def test_the_tokenisation(text, found):
    assert list(counting.words(text)) == found


@settings(deadline=None)
@given(st.text())
def test_words_are_words(text):
    for word in counting.words(text):
        assert list(counting.words(word)) == [word]
        assert word
        assert not set(word) & set(" ,.-_\u2019")


def test_text_is_counted_over_the_labels_and_the_rest_is_told():
    text = "Surprise party! A surprise PARTY, it\u2019s a party."
    found = counting.count(text.encode(), "text", words().labels, "t")
    assert found == ([2, 3, 1, 0], 2, 1)


def test_csv_and_json_are_laid_out_over_the_axes():
    axes = categories().labels
    table = b"receiver,day,count\nann,Mon,3\nbob the 2nd,Wed,4\n\nann,Mon,1\nbob the 2nd,Sun,5\neve,Mon,1\n"
    assert counting.count(table, "csv", axes, "t") == ([4, 0, 0, 0, 0, 4], 6, 2)
    nested = b'{"ann": {"Mon": 4}, "bob the 2nd": {"Wed": 4, "Sun": 5}, "eve": {"Mon": 1}}'
    assert counting.count(nested, "json", axes, "t") == ([4, 0, 0, 0, 0, 4], 6, 2)
    assert counting.count(b"party,7\n", "csv", words().labels, "t") == ([0, 7, 0, 0], 0, 0)
    for marked, form in ((b"party,7\r\n", "csv"), (b'{"party": 7}\r\n', "json"), (b"party " * 7, "text")):
        found = counting.count(b"\xef\xbb\xbf" + marked, form, words().labels, "t")
        assert found == ([0, 7, 0, 0], 0, 0)


def test_a_first_row_is_no_header_if_it_looks_like_a_count_gone_wrong():
    axes = words().labels
    for wrong in (b"party,7x\n", b"party,7\x00\n", b"party, 7 7\n"):
        with pytest.raises(RefusedError, match="row 1 must be a whole number"):
            counting.count(wrong, "csv", axes, "t")
    for header in (b"word,count\n", b"party,how often\n", b"word,2nd count\n"):
        assert counting.count(header + b"party,7\n", "csv", axes, "t").values == [0, 7, 0, 0]


@pytest.mark.parametrize(
    ("form", "content", "rule"),
    [
        (
            "csv",
            b"Gr\xf6\xdfe,3",
            "must be UTF-8 text, got bytes that are not at 2. This is not plain text in UTF-8. Save it as",
        ),
        (
            "json",
            b'{"Gr\xf6\xdfe": 3}',
            "got bytes that are not at 4. This is not plain text in UTF-8. Save it as plain text",
        ),
        ("text", b"PK\x03\x04", "must be plain text, got a file of another kind. This is an office document"),
        ("text", b"%PDF-1.7", "This is a PDF, not plain text. Open it, copy its text"),
        ("text", b"\xff", "must be UTF-8 text, got bytes that are not at 0"),
        ("csv", b"zebra\n", "must have 2 cells"),
        (
            "csv",
            b"zebra,-7\n",
            "must be a whole number from 0 to 2^62 in its last cell, got a negative number (not shown",
        ),
        ("csv", b"word,count\nzebra,7.5\n", "got a number that is not written as digits only"),
        ("csv", b"word,count\nzebra,\n", "got an empty cell"),
        ("csv", b"word,count\nzebra,\xd9\xa7\n", "got text (not shown"),
        ("csv", b"word,count\nzebra,99999999999999999999\n", "got a larger number"),
        ("csv", b"zebra,4611686018427387904\nzebra,7\n", "got a sum of rows that is more"),
        ("csv", b'zebra,"7\n', "must be comma-separated text"),
        ("json", b"[7]", "must hold one JSON object"),
        ("json", b'{"zebra": -7}', "must be a whole number from 0 to 2^62, got a negative number (not shown"),
        ("json", b'{"zebra": 7.0}', "got a number that is not whole"),
        ("json", b'{"zebra": true}', "got true or false"),
        ("json", b'{"zebra": {"x": 7}}', "got an object"),
        ("json", b'{"zebra": 7, "zebra": 7}', "must be given once"),
        ("json", b'{"zebra": 7', "must be JSON"),
    ],
)
def test_counts_that_are_none_are_refused_and_not_shown(form, content, rule):
    with pytest.raises(RefusedError) as refused:
        counting.count(content, form, words().labels, "counts")
    assert rule in str(refused.value)
    assert "zebra" not in str(refused.value)
    assert "7" not in str(refused.value)
    with pytest.raises(RefusedError, match=r"must be nested 2 deep, got 1$"):
        counting.count(b'{"ann": 3}', "json", categories().labels, "counts")


def of_rho(**changes):
    parts = {"axes": [("word", ["surprise", "party"])], "truncated": False} | changes
    levels = [PrivacyLevel.zcdp("0.125"), PrivacyLevel.zcdp(Fraction(1, 3))]
    return study.new("Mail", "To learn.", "a@b.org", **({"levels": levels} | parts))


def test_a_study_of_rho_comes_back():
    made = of_rho()
    stated = json.loads(made.to_json())
    assert stated["mechanism"] == {"name": "discrete Gaussian", "version": 1}
    assert [set(level) for level in stated["levels"]] == [{"rho", "meaning"}] * 2
    assert stated["levels"][1]["rho"] == "1/3"
    assert study.read(made.to_json().encode(), "s") == made
    jsonschema.Draft202012Validator(json.loads(study.SCHEMA_FILE.read_text())).validate(stated)
    assert (
        "(rho = 0.125; sigma 2; 20.0% of counts stay as they are; a true zero is reported as positive in 40% of cells)"
        in made.describe()
    )
    assert "counts as twice the rho" in made.describe()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda stated: stated.update(reports="truncated"), "reports"),
        (lambda stated: stated["mechanism"].update(name="two-sided geometric"), "levels[0]"),
        (lambda stated: stated["mechanism"].update(name="Gaussian"), "mechanism.name"),
        (lambda stated: stated["levels"][0].update(rho="0.125"), "levels[0].rho"),
        (lambda stated: stated["levels"][0].update(rho="500001"), "levels[0]"),
        (lambda stated: stated["levels"][0].update(rho="1/" + "9" * 30), "levels[0]"),
        (lambda stated: stated["levels"][0].update(meaning="Safe."), "levels[0].meaning"),
        (lambda stated: stated["levels"][0].update(epsilon="1"), "levels[0]"),
    ],
)
def test_a_study_of_rho_that_breaks_a_rule_is_refused(change, field):
    stated = json.loads(of_rho().to_json())
    change(stated)
    with pytest.raises(RefusedError) as refused:
        study.read(json.dumps(stated).encode(), "s")
    assert refused.value.field.startswith(field)


def test_levels_of_both_kinds_do_not_mix_in_a_study():
    with pytest.raises(RefusedError, match="levels must be of one kind, got levels of epsilon and levels of rho"):
        of_rho(levels=[PrivacyLevel.zcdp(1), PrivacyLevel(1, 1)])
    with pytest.raises(RefusedError, match="reports must be 'signed' with discrete Gaussian noise"):
        of_rho(truncated=True)


def test_waves_are_kept_in_their_order_and_what_they_add_up_to_is_said():
    once, waves = words(), words(waves=("spring", "summer", "autumn"))
    assert study.read(waves.to_json().encode(), "s") == waves
    assert once.waves == ()
    assert "waves" not in json.loads(once.to_json())
    assert waves.id != once.id
    said = waves.describe()
    assert "Waves: spring, summer, autumn." in said
    for level in waves.levels:
        assert level.repeated(3).in_numbers() in said
    assert "Waves" not in once.describe()
    assert waves.at("summer").named == f"{waves.title}, summer"
    assert waves.at("summer").to_json() == waves.to_json()
    assert once.at(None) == once


@pytest.mark.parametrize(
    ("waves", "rule"),
    [
        (("one",), "must number 2 to 1000"),
        (("a", "a"), "must differ from those before"),
        (("a", ""), "waves"),
        (("a", "b\nc"), "waves"),
    ],
)
def test_waves_that_cannot_be_are_refused(waves, rule):
    with pytest.raises(RefusedError, match=rule):
        words(waves=waves)


def test_a_wave_must_be_one_of_the_study():
    with pytest.raises(ValueError, match="must be one of spring, summer, got none"):
        words(waves=("spring", "summer")).at(None)
    with pytest.raises(ValueError, match="without waves"):
        words().at("spring")


PARTY, AGE = Covariate("party", ("D", "R")), Covariate("age", (), "18")


def test_covariates_are_kept_and_said_to_be_in_the_clear():
    made = words(covariates=(PARTY, AGE))
    assert study.read(made.to_json().encode(), "s") == made
    jsonschema.validate(json.loads(made.to_json()), json.loads(study.SCHEMA_FILE.read_text()))
    assert made.id != words().id
    assert "covariates" not in json.loads(words().to_json())
    said = made.describe()
    assert "party: one of D, R. Unprotected" in said
    assert "age: a number from 18. Unprotected" in said
    assert "may reveal who you are" in said
    assert "It also contains the covariates below, without noise." in said
    assert "clear" not in words().describe()


@pytest.mark.parametrize(
    ("covariates", "rule"),
    [
        ([Covariate("a b")], r"covariates\[0\].name must be at most 40 letters"),
        ([Covariate("")], "a letter first"),
        ([Covariate("lambda")], "that formulas can name"),
        ([PARTY, PARTY], r"covariates\[1\].name must differ from those before, got 'party' again"),
        ([Covariate("p", ("D",))], "must number 2 to 1000, got 1"),
        ([Covariate("p", ("D", "D"))], "must differ"),
        ([Covariate("p", ("D", " R"))], "without blank ends"),
        ([Covariate("p", (), "1.0")], "lowest must be a number"),
        ([Covariate("p", (), "3", "3")], "must be above the lowest, 3, got 3"),
        ([Covariate(f"p{i}") for i in range(33)], "must number 1 to 32, got 33"),
    ],
)
def test_covariates_that_cannot_be_are_refused(covariates, rule):
    with pytest.raises(RefusedError, match=rule):
        words(covariates=covariates)


def test_a_study_cannot_call_its_covariates_protected():
    described = json.loads(words(covariates=[PARTY]).to_json())
    described["covariates"][0]["meaning"] = "party: protected."
    with pytest.raises(RefusedError, match="must be what it means"):
        study.read(json.dumps(described).encode(), "s")
