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
    "level_strong": "Strong protection: whether you added or left out up to {amount} {unit} can be guessed right in "
    "at most {guesses} of cases (50% without the report).",
    "level_moderate": "Moderate protection: whether you added or left out up to {amount} {unit} can be guessed right "
    "in at most {guesses} of cases (50% without the report).",
    "level_weak": "Weak protection: whether you added or left out {amount} {unit} can be guessed right in more than "
    "90% of cases.",
    "level_nothing": "Practically no protection: whether you added or left out {amount} {unit} can be guessed right in "
    "more than 99% of cases.",
    "level_numbers": "N = {precision}, epsilon = {epsilon}",
    "level_rho": "rho = {rho}",
    "state_level": "The level is published with the report. Choose the one that you would always want.",
    "state_replace": "Replacing one {one} by another counts as 2 of the N {many}: one left out, one added.",
    "state_length": "Your total number of {many} is protected only up to N, too.",
    "rho_replace": "Replacing one {one} by another counts as twice the rho: one left out, one added.",
    "rho_length": "A difference of d {many} counts as d times the rho if each is in another place, and as d times d "
    "if all are in one place. So the total number of your {many} is hardly protected.",
    "state_again": "Decide before you look at the noise: choosing among reports at several levels or under several "
    "names reveals something too, and weakens the protection.",
    "nothing_counted": "Nothing that the study counts was found: all {cells} counts are zero. Are these the right "
    "data, in the right language? If so, continue: a report of zeros is a report like any other.",
    "not_text": f"This is not plain text in UTF-8. {_REMEDY}",
    "office_file": f"This is an office document, not plain text. {_REMEDY}",
    "pdf_file": "This is a PDF, not plain text. Open it, copy its text into a text editor, and save that as plain "
    "text, UTF-8.",
    "no_name": "The name must have at least one letter, digit or sign.",
    "clear_heading": "Unprotected, sent without noise",
    "clear_each": "{name}: {allowed}. Unprotected: the report contains it as you state it.",
    "clear_known": "Anybody who has the report can read these values. Together, or with what else is known, they may "
    "reveal who you are. Your counts keep the protection of the level even then.",
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


def level(strength: str, amount: str, unit: str, guesses: str) -> str:
    """What a level protects in one sentence; all but the unit are those of ``promise``."""
    named = BOTH[f"unit_{unit}s_one" if amount == "1" else f"unit_{unit}s"]
    return BOTH[f"level_{strength}"].format(amount=amount, unit=named, guesses=guesses)


WAVES = {
    "state_waves": "Waves: {waves}. You are asked for one report in each wave, about your counts of that time. Your "
    "reports carry the same token in all waves: whoever has them can see that they come from one person, and which "
    "waves are missing.",
    "state_sum": "Something that shows in the counts of only one wave is protected as stated for the level. Something "
    "that shows in every wave, such as a habit, is protected less. All {number} reports together, at one level, if the "
    "counts of every wave may differ by as much:",
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
