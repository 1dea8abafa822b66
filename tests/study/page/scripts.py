"""The page's own scripts, run in node: with what they are asked, and without the page."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import countveil.study.page

HERE = Path(countveil.study.page.__file__).parent
PARTS = ("fractions.js", "survival.js", "noise.js", "gaussian.js", "counting.js", "covariates.js", "report.js")
TWINS = "".join((HERE / name).read_text() for name in PARTS)
_AROUND = """
"use strict";
const given = JSON.parse(require("fs").readFileSync(0, "utf8"));
const stream = (text) => {
  const bytes = Buffer.from(text, "base64");
  let place = 0;
  return (size) => {
    if (place + size > bytes.length) throw new Error("the bytes are used up");
    return new Uint8Array(bytes.subarray(place, (place += size)));
  };
};
"""


def node(code, given, around=TWINS):
    """What a function body in JavaScript returns for ``given``; BigInts come as text."""
    return _told(f"{around}\nconst answer = (() => {{ {code} }})(); {_TOLD}", given)


def node_async(code, given, around=""):
    """What the body of an async function returns."""
    return _told(f"{around}\n(async () => {{ {code} }})().then((answer) => {{ {_TOLD} }});", given)


_TOLD = 'process.stdout.write(JSON.stringify(answer, (key, x) => (typeof x === "bigint" ? String(x) : x)));'


def _told(script, given):
    if shutil.which("node") is None:
        pytest.skip("needs node to run the page's scripts")
    done = subprocess.run(
        ["node", "-e", _AROUND + script], input=json.dumps(given), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
