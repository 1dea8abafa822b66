#!/bin/sh
# A study end to end by commands alone: study file, one process and one ledger for each participant, collect, fit.
# Participants' Python can import nothing but the standard library and countveil; the first thing is to check it.
#
# sh benchmarks/journey.sh COUNTS.npz WORDS.txt [PARTICIPANTS] [N:EPSILON] [TOPICS]
#
# COUNTS.npz holds true counts, a person a row (scipy.sparse), WORDS.txt the words of its columns. Each person gets a
# text with their words. PYTHON and COUNTVEIL name the commands, and TMPDIR where the files go.
set -eu
counts=$1 words=$2 people=${3:-300} level=${4:-1:2} topics=${5:-10}
python=${PYTHON:-.venv/bin/python}
countveil=${COUNTVEIL:-.venv/bin/countveil}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
alone() { env -i PYTHONPATH=src "$(command -v python3)" -S -s "$@"; }

alone -c 'import importlib.util as u; assert not any(u.find_spec(n) for n in ("numpy", "scipy", "typer", "rich"))'
cp "$words" "$folder/word.txt"
"$python" - "$counts" "$folder" "$people" <<'PREPARE'
import random, sys
from pathlib import Path
import scipy.sparse as sp
counts, folder, people = sp.csr_array(sp.load_npz(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3])
words = (folder / "word.txt").read_text().split()
for person in random.Random(1).sample(range(counts.shape[0]), people):
    row = counts[[person]].toarray()[0]
    text = [word for word, count in zip(words, row) for _ in range(count)]
    random.Random(person).shuffle(text)
    home = folder / "people" / f"{person:05}"
    home.mkdir(parents=True)
    (home / "mail.txt").write_text(" ".join(text))
PREPARE

began=$(date +%s)
$countveil study new "$folder/word.txt" -o "$folder/study.json" --title "Mail" --purpose "A rehearsal." \
    --contact "nobody@example.org" --level "$level" > "$folder/said"
mkdir "$folder/reports"
for home in "$folder"/people/*; do
    alone -m countveil.privacy report "$folder/study.json" "$home/mail.txt" --level "$level" --yes \
        -o "$folder/reports/$(basename "$home").json" --ledger "$home/ledger" > "$home/said"
done
echo "$(ls "$folder/reports" | wc -l) reports of $people people, $(ls -d "$folder"/people/*/ledger | wc -l) ledgers," \
    "$(cat "$folder"/reports/* | sort | uniq | wc -l) different reports: $(($(date +%s) - began)) s"
$countveil collect "$folder/study.json" "$folder/reports" -o "$folder/release.npz"
$countveil fit topics "$folder/release.npz" -o "$folder/fit.nc" --topics "$topics" --seed 1
echo "all of it: $(($(date +%s) - began)) s"
