"""The study, the levels and the text that tests of the page in a browser use."""

from countveil.privacy import PrivacyLevel, study

WORDS = [
    *("surprise", "party", "cake", "candles", "balloon", "invite"),
    *("budget", "meeting", "report", "deadline", "invoice", "agenda"),
]
LEVELS = [PrivacyLevel(1, 10), PrivacyLevel(5, 10), PrivacyLevel(3, 1)]
TEXT = "A surprise party! Cake, candles; the SURPRISE party’s at ten: ΟΔΟΣ, İstanbul."


def planned(title="Offices", words=WORDS, levels=LEVELS, **more):
    return study.new(title, "To learn.", "a@b.org", levels, [("word", words)], **more)


STUDY = planned()
