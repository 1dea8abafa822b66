"""One raw e-mail: who wrote it, who got it, and its words; and a random choice of many by their words."""

import email
import hashlib
import heapq
import re
from datetime import UTC
from email.message import Message
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import NamedTuple

import scipy.sparse as sp

ADDRESS = re.compile(r"[^\s<>,;:\"'()\[\]]+@[^\s<>,;:\"'()\[\]]+")
WORD = r"(?u)\b[^\W\d_]{2,}\b"  # two letters or more
RECEIVERS = ("to", "cc", "bcc")


class Mail(NamedTuple):
    """An e-mail; the digest is the same for all its copies."""

    sender: str
    receivers: frozenset[str]
    text: str
    digest: bytes


def read_mail(path: Path) -> Mail | None:
    """A file as an e-mail; None if it cannot be read or names no sender."""
    try:
        message = email.message_from_bytes(path.read_bytes())
        return parsed(message)
    except Exception:  # on damaged mails the parser raises almost anything
        return None


def parsed(message: Message) -> Mail | None:
    """Sender, receivers, each of them once, and the plain text."""
    senders = addresses(message, "from")
    if not senders:
        return None
    receivers = frozenset(each for name in RECEIVERS for each in addresses(message, name))
    text = plain_text(message)
    parts = (senders[0], moment(message), str(message.get("subject", "")), " ".join(text.split()))
    digest = hashlib.blake2b("\0".join(parts).encode(errors="surrogatepass"), digest_size=16).digest()
    return Mail(senders[0], receivers, text, digest)


def addresses(message: Message, name: str) -> list[str]:
    """The addresses in a header, in lower case; names beside them are left out."""
    return [
        found.lower() for value in message.get_all(name, []) for found in ADDRESS.findall(str(value).replace("\n", " "))
    ]  # fmt: skip


def moment(message: Message) -> str:
    """When it was sent, in one time zone for all copies, UTC if it names none; the header if it cannot be read."""
    value = str(message.get("date", ""))
    try:
        found = parsedate_to_datetime(value)
        return str((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())
    except (TypeError, ValueError, OverflowError):
        return value


def plain_text(message: Message) -> str:
    """All parts of plain text that are not attached; what is not in its character set is replaced."""
    found = []
    for part in message.walk():
        if part.get_content_type() != "text/plain" or part.get_content_disposition() == "attachment":
            continue
        payload = part.get_payload(decode=True)
        if not isinstance(payload, bytes):
            continue
        try:
            found.append(payload.decode(part.get_content_charset() or "utf-8", errors="replace"))
        except LookupError:  # an unknown character set
            found.append(payload.decode("latin-1"))
    return "\n".join(found)


class Texts:
    """At most n e-mails of ``least_tokens`` words or more: those with the smallest digests, a random choice."""

    def __init__(self, n: int, least_tokens: int) -> None:
        self._n, self._least, self._heap = n, least_tokens, list[tuple[int, str]]()
        self._word = re.compile(WORD)

    def add(self, mail: Mail) -> None:
        """Take it if it is long enough and among the first n so far."""
        if len(self._word.findall(mail.text)) < self._least:
            return
        entry = (-int.from_bytes(mail.digest), mail.text)
        if len(self._heap) < self._n:
            heapq.heappush(self._heap, entry)
        else:
            heapq.heappushpop(self._heap, entry)

    def counts(self) -> sp.csr_array:
        """(D, V) words in lower case, the columns in alphabetical order."""
        from sklearn.feature_extraction.text import CountVectorizer

        if not self._heap:
            return sp.csr_array((0, 0), dtype="int64")
        chosen = [text for _, text in sorted(self._heap, reverse=True)]
        return sp.csr_array(CountVectorizer(token_pattern=WORD, dtype="int64").fit_transform(chosen))
