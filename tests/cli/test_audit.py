from countveil.privacy import PrivacyLevel
from countveil.study.audit import Finding
from countveil.study.audit.checks import LEVELS
from tests.commands import ASKED, fails, run


def test_the_audit_says_every_check_and_fails_if_one_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "word.txt").write_text("surprise\nparty\n")
    level = PrivacyLevel(1, 10)
    asked = []

    def audit(levels):
        asked.append(list(levels))
        yield Finding("arrays", "law", level, True, "p = 0.5", "a deviation of 0.001")
        yield Finding("arrays", "alpha", level, len(asked) == 1, "p = 0", "alpha wrong by 1%")

    monkeypatch.setattr("countveil.study.audit.audit", audit)
    said = run("audit", "--level", "10:1").stdout
    assert "PASS  arrays, law (N=10, epsilon=1): p = 0.5; detects a deviation of 0.001" in said
    assert said.endswith("2 of 2 checks passed.\n")
    run("study", "new", "word.txt", "-o", "s.json", *ASKED)
    said = run("audit", "--study", "s.json", status=1).stdout
    assert "FAIL  arrays, alpha (N=10, epsilon=1): p = 0; detects alpha wrong by 1%" in said
    run("audit", status=1)
    assert asked == [[level], [level], list(LEVELS)]
    run("audit", "--level", "rho:0.125", "--level", "3:1", status=1)
    assert asked[-1] == [PrivacyLevel.zcdp("0.125"), PrivacyLevel(1, 3)]
    assert "level must be N:EPSILON" in fails("audit", "--level", "strong")
