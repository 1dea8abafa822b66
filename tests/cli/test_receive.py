"""``countveil receive``: what it answers by HTTP is tested in tests/receive."""

import socket

from countveil.privacy import PrivacyLevel
from countveil.privacy.study import new
from tests.commands import fails, run


def test_what_cannot_be_done_is_refused_in_one_line(tmp_path, monkeypatch):
    study = new("Mail", "To learn.", "a@b.org", [PrivacyLevel(1, 10)], [("word", ["party", "cake"])])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.json").write_text(study.to_json())
    assert "must begin with postgresql://" in fails("receive", "s.json", "--db", "mysql://a/b")
    assert "no directory" in fails("receive", "s.json", "--db", "nowhere/r.sqlite")
    (tmp_path / "text").write_text("no database " * 50)
    assert "must be a store of reports" in fails("receive", "s.json", "--db", "text")
    assert "trusted-proxy must be an IP address or a network such as 10.0.0.0/8, got 'web'" in fails(
        "receive", "s.json", "--db", "r.sqlite", "--trusted-proxy", "10.0.0.1", "--trusted-proxy", "web"
    )
    assert "TLS" in run("receive", "--help").stdout
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        said = fails("receive", "s.json", "--db", "r.sqlite", "--port", port)
    assert f"host and port must be free on this machine, got 127.0.0.1 and {port}: Address" in said
    assert "listening" not in said
