"""What the participant's page and command both say: one text for both, so that they cannot differ.

Places in curly brackets are filled in by either side; the page takes its copy, which can be translated, from here.
"""

_REMEDY = (
    "Save it as plain text, UTF-8: in Word, File > Save As > Plain Text (.txt), then Other encoding > Unicode (UTF-8); "
    "in LibreOffice, File > Save As > Text - Choose Encoding (.txt), then UTF-8; in Excel, File > Save As > CSV UTF-8."
)
BOTH = {
    "unit_words": "words",
    "unit_words_one": "word",
    "unit_counts": "counts",
    "unit_counts_one": "count",
    "level_strong": "Strong protection: if you add or leave out up to {amount} {unit}, the report hardly shows it.",
    "level_moderate": "Moderate protection: if you add or leave out up to {amount} {unit}, a guess from the report is "
    "often right, but never certain.",
    "level_weak": "Weak protection: if you add or leave out {amount} {unit}, the report usually shows it.",
    "level_nothing": "Practically no protection: if you add or leave out {amount} {unit}, the report almost always "
    "shows it.",
    "level_numbers": "N = {precision}, epsilon = {epsilon}",
    "level_rho": "rho = {rho}",
    "state_level": "The level that you choose is published with the report. Choose what you would always want, not "
    "what this record needs.",
    "state_replace": "Putting one {one} in place of another takes 2 of the N {many}: one left out, one added.",
    "state_length": "How many {many} you have in all is hidden only as far as N says, too.",
    "rho_replace": "Putting one {one} in place of another takes twice the rho: one left out, one added.",
    "rho_length": "Differences of d {many} take more rho: d times as much where each is in another place, d times d "
    "as much where all are in one. So how many {many} you have in all is hardly hidden.",
    "state_again": "Decide before you look at the noise. Making reports at other levels or under other names until you "
    "like one tells something by itself, and weakens the promise.",
    "nothing_counted": "Nothing of the study was found: all {cells} counts are zero. Is this the right record, in the "
    "right language? If it is, go on: a report of zeros is a report like any other.",
    "not_text": f"This is not plain text in UTF-8. {_REMEDY}",
    "office_file": f"This is a document of an office program, not plain text. {_REMEDY}",
    "pdf_file": "This is a PDF, not plain text. Open it, copy its text into a text editor, and save that as plain "
    "text, UTF-8.",
    "no_name": "Give the record a name with a letter, a digit or a sign in it.",
    "clear_heading": "Handed over in the clear, without noise",
    "clear_each": "{name}: {allowed}. Not protected: it stands in the report as you state it.",
    "clear_known": "Anybody who has the report reads them. Together, or with what else is known, they may tell who you "
    "are. Your counts keep the promise of the level even then.",
    "one_of": "one of {values}",
    "one_of_many": "one of the {number} values of the study, such as {values}",
    "number": "a number",
    "number_from": "a number from {lowest}",
    "number_to": "a number to {highest}",
    "number_between": "a number from {lowest} to {highest}",
    "must_be": "must be {allowed}",
    "must_be_decimal": "must be {allowed}, a decimal of at most 9 digits before and 6 after the point, such as 42 or "
    "0.5",
}


def level(strength: str, amount: str, unit: str) -> str:
    """What a level protects in one sentence; ``strength`` and ``amount`` are those of ``promise``."""
    named = BOTH[f"unit_{unit}s_one" if amount == "1" else f"unit_{unit}s"]
    return BOTH[f"level_{strength}"].format(amount=amount, unit=named)


WAVES = {
    "state_waves": "Waves: {waves}. You are asked for one report in each, about your counts of that time. Your reports "
    "carry the same token in all waves: whoever has them can see that they are one person's, and in which waves there "
    "is none.",
    "state_sum": "What is in the counts of one wave alone is protected as the level says. What is in those of every "
    "wave, such as a habit, is protected less. All {number} reports together, at one level, where the counts of every "
    "wave may differ by as much:",
}
"""What the command says besides in studies in waves, which have no page."""


def statements(unit: str, of_rho: bool = False) -> list[str]:
    """What a participant must know before choosing a level and making a report, a line each."""
    one, many = BOTH[f"unit_{unit}s_one"], BOTH[f"unit_{unit}s"]
    keys = ("state_level", *before(of_rho), "state_again")
    return [BOTH[key].format(one=one, many=many) for key in keys]


def before(of_rho: bool) -> tuple[str, str]:
    """The keys of what a level takes: of replacing a unit, and of the length of the whole."""
    return ("rho_replace", "rho_length") if of_rho else ("state_replace", "state_length")
