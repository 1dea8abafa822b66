"""Mail folders made up for tests."""

import numpy as np

WORDS = [f"{a}{b}{c}" for a in "bcdfg" for b in "aeiou" for c in "lmnrs"]
OWNERS = ("ann", "bob", "cyd", "dee", "eve", "fay")


def raw(sender="ann@x.com", to="bob@x.com", text="hello there", date="Mon, 14 May 2001 16:39:00 -0700", **headers):
    """The bytes of a mail; a header of None is left out."""
    lines = {"Message-ID": "<1@x>", "Date": date, "From": sender, "To": to, "Subject": "none", **headers}
    head = "".join(f"{name.replace('_', '-')}: {value}\n" for name, value in lines.items() if value is not None)
    return (head + "\n" + text).encode()


def put(folder, **files):
    """Write files at owner/folder/number, given as owner__folder__number."""
    for name, data in files.items():
        path = folder.joinpath(*name.split("__"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def enron(folder, mails=60, seed=1):
    """Mails of sixty words and more from each of six owners to some of the others, each with a copy in an inbox."""
    rng = np.random.default_rng(seed)
    for place, owner in enumerate(OWNERS):
        for i in range(mails):
            to = rng.choice([other for other in OWNERS if other != owner], 2, replace=False)
            text = " ".join(rng.choice(WORDS, rng.integers(60, 90), p=shares(place, rng)))
            mail = raw(f"{owner}@enron.com", f"{to[0]}@enron.com, {to[1]}@enron.com", text, Subject=str(i))
            put(folder, **{f"{owner}__sent_items__{i}.": mail, f"{to[0]}__inbox__{owner}{i}.": mail})
    return folder


def shares(place, rng):
    """A mail's words: a random tenth of them, most of its owner's own."""
    weight = np.where(np.arange(len(WORDS)) % len(OWNERS) == place, 8.0, 1.0) * (rng.random(len(WORDS)) < 0.2)
    return weight / weight.sum()
