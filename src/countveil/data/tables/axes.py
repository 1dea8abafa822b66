"""Which columns of a table with a row for each cell name the cell, and which one has its report."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice, pairwise
from math import prod

from countveil.data.dates import NUMBER
from countveil.data.tables.cells import BLANK, NumberFormat, interval_of
from countveil.data.tables.formats import STATUSES
from countveil.data.tables.text import TIMES
from countveil.data.tables.total_lines import SEXES, has_name

VALUES = (
    *("obs_value", "value", "values", "count", "counts", "n", "freq", "_freq", "_freq_", "frequency"),
    *("deaths", "number", "cases", "anzahl"),
)
LIKE_VALUES = re.compile(
    r"(.*[\W_])?(gbc|private|noisy|\w*views|visits|counts?|deaths|births|cases|events|injuries|values?)([\W_].*)?",
    re.IGNORECASE,
)
NOTES = ("notes", "status", "symbol", "flag", "flags", "footnotes")
SIGMAS = re.compile(r"sigma|std(dev|ev)?|standard.?deviation", re.IGNORECASE)
EXPOSURES = re.compile(
    r"population|exposure|person.?years|(?<![a-z])(popn?|pob|pmun)(tot(al)?)?(?![a-z])|popestimate|einwohner(zahl)?|bev(ö|oe)lkerung"
    r"|befolkning|folkm(ä|ae)ngd|inwoners|habitants|poblaci[oó]n|popolazione|popula[cç][aã]o",
    re.IGNORECASE,
)
OF_POPULATIONS = re.compile(r"tot(al)?|resident|mid|year|est(imated?)?", re.IGNORECASE)
"""Words in the names of populations that are no others."""
BESIDE = re.compile(
    r"%|_[0-9]{3}(ea|ma?)$|(?<![a-z])(rates?|ratio|shares?|per ?cent(age)?|pct|per 1[0 .,']*0|threshold|average|avg"
    r"|mean|median|density|latitude|longitude|moe|margin of error|rse|standard (deviation|error)|std\.? ?(dev|err)"
    r"|flags?(?=[\W_]*(codes?|[0-9]|$))|ci|[lu]cl|(lower|upper)(?=[\W_]*(ci|bound|limit|conf|[0-9]|$))"
    r"|prozent|\w*(anteil|dichte)|\w+quote|durchschnitt|mittelwert|taux|moyenne|médiane|pourcentage|tasa|promedio"
    r"|porcentaje)(?![a-z])",
    re.IGNORECASE,
)
"""Numbers beside reports that are no reports."""
COUNTED = "(count)"
"""What a name ends with that has counts, whatever else it says."""
TIME_NAMES = re.compile(r"(.*[\W_])?(year|years|\w*jahr|année|annee|año|ano)([\W_]of[\W_].*)?", re.IGNORECASE)
KEYS = re.compile(
    r"(.*[\W_])?(id|ids|geoid|fips|insee|code|codes|ags|plz|zip|postcode|index|idx)|.*[a-z](Id|ID)"
    r"|.*[\W_](nr|no|num)\.?|.*(schlüssel|nummer|leitzahl|kennziffer)|code[\W_].+|cod(_.+|geo|com|dep|reg)"
    r"|(kommune?|gemeinde|kreis|län)(nr|kod|kode)",
    re.IGNORECASE,
)
"""Names of columns that tell records apart, in numbers."""
_AGES = (
    r"ages?|alter|alters(gruppen?|klassen?)|alder|aldersgruppe|ålder|åldersgrupp|leeftijd|leeftijdsgroep|ikä|ikäryhmä"
    r"|wiek|grup[ay] wieku|věk|életkor|korcsoport|âge|[\w ]{1,30} d['’]âge|edad|grupos? de edad|idade|amžius"
    r"|grupos? etários?|età|class[ei] di età|vârsta|yaş|yaş grubu|возраст|возрастная группа|вік|ηλικία|starost|vanus"
    r"|vecums|年齢(階級|区分)?|年龄组?|연령(별|대|계층)?"
)
AGES = re.compile(rf"(.*[\W_])?({_AGES})([\W_]?(groups?|bands?|years))?", re.IGNORECASE)
REPORTS = re.compile(r"[<≤]? ?[-+−]?[0-9]+([.,][0-9]+)?|\W*\w?\W*")
"""Counts, also with noise or hidden by a bound or a sign."""
AXES = re.compile(
    rf"(.*[\W_])?({_AGES}|month|monat|week|woche|day|tag|date|datum|hour|stunde|quarter|sex|gender|state|county|district"
    r"|region|area|tract|ward|zone|country|place|group|grade|municipality|commune|gemeinde|kreis|département|comune"
    r"|municipio|provincia)([\W_]?(group|band|code|years))?",
    re.IGNORECASE,
)
RANKS = re.compile(r"no|nr|num|rank|rang|pos|position|obs|row|#|n°|№", re.IGNORECASE)
"""Names of columns that number the rows."""
RATE_ENDS = re.compile(r"\s*($|[(,]|per\b|of\b)", re.IGNORECASE)
"""What follows the word for a rate in a name."""
BAND = re.compile(r"(?<![0-9])[0-9]{1,3}([.,][0-9]+)? ?(%|per ?cent)", re.IGNORECASE)
"""A limit in per cent, as in names of groups."""
OTHER_SENSES = (
    (r"pop", r"rock|jazz|classical|folk|hip.?hop|metal|blues"),
    (r"shares?", r"likes?|comments?|clicks?|views?|retweets?|reactions?"),
    (r"(.* )?average", r"(very )?(good|poor|bad)|excellent|fair"),
)
"""Words for rates and populations, and the words beside which they are music, posts and grades."""
MANY_ZEROS = 0.2
YEARS = 4  # rows of years, and years between two of them, at most
MOST_COLUMNS = 50  # of a long table, and before which codes of records are
FEW_COLUMNS = 20  # a vocabulary has more
MOST_MEASURES = 4  # beside numbers that name cells; a table with more has a row for each record
MONTH_NAMES = re.compile(
    rf"(?<![^\W\d_])({'|'.join(sorted(NUMBER, key=len, reverse=True))})(?![^\W\d_])", re.IGNORECASE
)
REVISED = re.compile(r"(?<=[0-9])[ (]*([*]+|[pre])\)?$")
"""What follows a time whose numbers are provisional, revised or estimated."""
CODE, LETTERED = re.compile(r"[0-9A-Z]*[0-9][0-9A-Z]*"), re.compile(r"[A-Z]{1,3}[0-9][0-9A-Z]*")
"""Of codes with digits, such as 2A004, and those that begin with letters, such as E07000223."""
DIGITS, ROWS = 3, 3  # of numbers that may be codes at least


def long_axes(columns: Mapping[str, list[str]]) -> tuple[list[str], str | None, list[str]]:
    """(axes, the column of reports, further columns of reports) of a long table; ([], None, []) of others.

    Axes are columns of labels, times, intervals or codes that together name each row once, as few of them as do so;
    where labels do not, or beside a column that has the name of reports, also columns of whole numbers if all
    combinations occur once. Numbers of rows, and numbers that are the same everywhere, are no reports beside others.
    Rows may repeat a cell only beside a column that has the name of reports.
    """
    names = list(columns)
    n = len(columns[names[0]]) if names else 0
    if not 3 <= len(names) <= MOST_COLUMNS:
        return [], None, []
    values = [name for name in names if name.casefold() in VALUES and is_of_numbers(columns[name], True)]
    coded = [name for name in names if name not in values and is_of_codes(name, columns[name], n, bool(values))]
    numeric = [name for name in names if name not in (*values, *coded) and is_of_numbers(columns[name])]
    codes = codes_of_words(columns, numeric, [name for name in names if name not in (*values, *coded, *numeric)])
    if codes and len(values) + len(numeric) > len(codes):
        numeric = [name for name in numeric if name not in codes]
        coded += codes
    measures = [
        name
        for name in numeric
        if not any(form.search(name) for form in (EXPOSURES, SIGMAS, BESIDE)) and not KEYS.fullmatch(name)
    ]
    if are_across([*values, *(measures or numeric)]):
        return [], None, []
    measures = [name for name in measures if varies(columns[name])] or ([] if values else measures)
    if are_across([*values, *measures]):
        return [], None, []
    like = [name for name in measures if LIKE_VALUES.fullmatch(name)]
    value = next(iter([*values, *like, *measures, *numeric]), None)
    labels = [
        name
        for place, name in enumerate(names)
        if name not in (*values, *numeric, *STATUSES)
        and name.casefold() not in NOTES
        and is_of_labels(columns[name], n, place == 0)
    ]
    last = [*values[:1], *like[:1], *measures[-1:]][:1]
    crossed = [
        name
        for name in names
        if name in labels
        or (
            name in numeric
            and name not in last
            and not EXPOSURES.search(name)
            and is_whole(columns[name])
            and len(set(columns[name])) < n
        )
    ]
    incomplete = bool(labels) and cells_named(columns, labels) < n
    if last and (values or incomplete) and len(crossed) > len(labels) and is_crossing(columns, crossed):
        labels, value = crossed, last[0]
        measures = [name for name in measures if name not in labels]
    if value is None or not labels:
        return [], None, []
    named = cells_named(columns, labels)
    if named < n and not (values and 2 * named > n):
        return [], None, []
    axes = list(labels)
    for name in sorted(labels, key=lambda name: (name not in coded, -len(set(columns[name])), -labels.index(name))):
        others = [axis for axis in axes if axis != name]
        if others and cells_named(columns, others) == n:
            axes = others
    further = [name for name in (*values, *measures) if name != value]
    if len(axes) < 2 or (set(axes) & set(coded) and len(further) > MOST_MEASURES):
        return [], None, []
    return axes, value, further


def are_across(names: Sequence[str]) -> bool:
    """Whether columns of reports are one variable at several times or levels, apart from totals.

    That is so if all names are times, or each differs from another in nothing but numbers, months and sexes.
    """
    listed = [name for name in names if not has_name(name)]
    alike = Counter(bare(SEXES.sub("", MONTH_NAMES.sub("", REVISED.sub("", name)))) for name in listed)
    return len(listed) > 1 and (all(map(TIMES.fullmatch, listed)) or min(alike.values()) > 1)


def codes_of_words(columns: Mapping[str, list[str]], numeric: Sequence[str], words: Sequence[str]) -> list[str]:
    """Columns of numbers that are codes of a column of words: each number goes with one word, and each word with one.

    Reports would differ between rows with one label. A column that tells every row apart is no code.
    """
    sizes = {name: len(set(columns[name])) for name in (*numeric, *words)}
    return [
        name
        for name in numeric
        if 1 < sizes[name] < len(columns[name])
        and any(sizes[name] == sizes[word] == cells_named(columns, [name, word]) for word in words)
    ]


def cells_named(columns: Mapping[str, list[str]], axes: Sequence[str]) -> int:
    """How many different cells some columns name."""
    return len(set(zip(*(columns[axis] for axis in axes), strict=True)))


def is_crossing(columns: Mapping[str, list[str]], axes: Sequence[str]) -> bool:
    """Whether every combination of the levels of two columns or more occurs once."""
    sizes = [len(set(columns[name])) for name in axes]
    n = len(columns[axes[0]]) if axes else 0
    return len(axes) > 1 and min(sizes) > 1 and prod(sizes) == n == cells_named(columns, axes)


def varies(cells: Sequence[str]) -> bool:
    """Whether cells differ, and not as the numbers of rows do."""
    return len(set(cells)) > 1 and list(cells) != [str(int(cells[0] == "1") + row) for row in range(len(cells))]


def is_whole(cells: Sequence[str]) -> bool:
    """Whether all cells are whole numbers."""
    return all(map(str.isdecimal, cells))


def is_of_numbers(column: Sequence[str], times: bool = False) -> bool:
    """Whether a third of what a column has are numbers, and not all are codes or, unless ``times``, years."""
    full = [cell for cell in column if cell not in BLANK]
    numbers = sum(
        cell.lstrip("+-−<")[:1].isdecimal() and not any(map(str.isalpha, cell[:-2])) and "--" not in cell
        for cell in full
    )
    codes = all(cell.isdecimal() and (cell[0] == "0" and len(cell) > 1) for cell in full)
    is_time = not times and all(TIMES.fullmatch(cell) for cell in full)
    return 3 * numbers >= len(full) > 0 and not is_time and not codes


def is_of_codes(name: str, column: Sequence[str], n_rows: int, beside_values: bool) -> bool:
    """Whether a column of numbers or intervals has labels: by its name, or as intervals beside a column of reports.

    Names of totals may stand among them.
    """
    full = [cell for cell in column if cell and not has_name(cell)]
    if not full or len(set(full)) == len(full) == n_rows:
        return False
    if are_ages(name, full):
        return True
    if are_intervals(full):
        return beside_values or bool(AXES.fullmatch(name))
    return are_levels(full) and any(form.fullmatch(name) for form in (AXES, KEYS, TIME_NAMES))


def are_ages(name: str, cells: Sequence[str]) -> bool:
    """Whether a column has groups of ages, by its name; "age" may also be a word, with reports like any other."""
    return bool(AGES.fullmatch(name)) and not all(map(REPORTS.fullmatch, cells))


def are_intervals(cells: Sequence[str]) -> bool:
    """Whether all cells are intervals, such as groups of ages."""
    try:
        return all(interval_of(cell, NumberFormat(",", ".")) is not None for cell in dict.fromkeys(cells))
    except ValueError:
        return False


def is_of_labels(column: Sequence[str], n_rows: int, first: bool = False) -> bool:
    """Whether a column has more than one level, and nearly no row without, unless ``first``."""
    different = set(column)
    return len(different - {""}) > 1 and (2 * sum(map(bool, column)) > n_rows or (first and bool(column[0])))


def column_filled_once(columns: Mapping[str, list[str]], axes: Sequence[str]) -> str | None:
    """An axis whose labels are in the first row of each group only; its other rows are no totals.

    That is one whose empty cells would name a different cell in each row with the label above, below several labels.
    """
    for axis in axes:
        column = columns[axis]
        if not column or not column[0] or all(column) or len(axes) < 2:
            continue
        filled: list[str] = []
        groups: set[str] = set()
        for cell in column:
            filled.append(cell or filled[-1])
            groups |= set() if cell else {filled[-1]}
        if len(groups) > 1 and cells_named({**columns, axis: filled}, axes) == len(column):
            return axis
    return None


def key_column(columns: Mapping[str, list[str]], labelled: bool = False) -> str | None:
    """A column of numbers that is no count, for one of the reasons below; ``labelled`` rows have another label."""
    first = [(name, with_cells(cells)) for name, cells in islice(columns.items(), MOST_COLUMNS)]
    padded = {name: is_of_padded(cells) for name, cells in first}
    for place, (name, cells) in enumerate(first):
        several, differ = len(cells) > 1, len(set(cells)) == len(cells)
        whole = several and is_whole(cells)
        years = whole and all(len(cell) == 4 and 1800 <= int(cell) <= 2100 for cell in cells)
        near = years and max(map(int, cells)) - min(map(int, cells)) < YEARS * len(set(cells))
        run = whole and differ and int(max(cells, key=int)) - int(min(cells, key=int)) == len(cells) - 1
        first_one = not place and not labelled
        alone = several and differ and first_one
        reasons = {
            "times other than years": several and not whole and all(map(TIMES.fullmatch, cells)),
            "years, by their name": years and (TIME_NAMES.fullmatch(name) or AXES.fullmatch(name)),
            "years close together": near and (len(cells) >= YEARS or (not place and differ)),
            "codes, by their name": differ and KEYS.fullmatch(name) and (whole or are_mixed(CODE, cells)),
            "codes of letters and digits": several and differ and are_mixed(LETTERED, cells),
            "groups of ages, by their name": several and are_ages(name, cells),
            "groups beside numbers": (labelled or place) and are_groups(cells, first[:place], first[place + 1 :]),
            "codes with zeros before them": whole and differ and padded[name] and not all(padded.values()),
            "ranks, by their name": run and len(cells) > 2 and RANKS.fullmatch(name),
            "numbers of rows": alone and run and len(cells) > 3 and is_increasing(cells),
            "numbers before labels": whole and first_one and are_before_labels(cells, first[1:2]),
            "longer than all counts": alone and are_codes(name, cells) and is_longer(cells, first[1:]),
            "levels, by the name of their axis": alone and AXES.fullmatch(name) and are_levels(cells),
        }
        if any(reasons.values()):
            return name
    return None


def key_columns(columns: Mapping[str, list[str]], labelled: bool = False) -> list[str]:
    """All columns of numbers that are no counts."""
    keys: list[str] = []
    while key := key_column({name: c for name, c in columns.items() if name not in keys}, labelled or bool(keys)):
        keys.append(key)
    return keys


def is_all_text(cells: Sequence[str]) -> bool:
    """Whether nearly all cells have something, with letters and without digits."""
    full = [cell for cell in cells if cell]
    return 2 * len(full) > len(cells) and all(any(map(str.isalpha, c)) and not any(map(str.isdigit, c)) for c in full)


def are_before_labels(cells: Sequence[str], columns: Sequence[tuple[str, Sequence[str]]]) -> bool:
    """Whether the next column has the names of different numbers, or the time of which a number is the code."""
    after = columns[0][1] if columns else []
    if len(set(cells)) == 1:
        return bool(after) and not is_whole(after) and all(map(TIMES.fullmatch, after))
    return len(set(cells)) == len(set(after)) == len(cells) and is_all_text(after)


def are_mixed(form: re.Pattern[str], cells: Sequence[str]) -> bool:
    """Whether all cells have this form, and some have letters."""
    return all(map(form.fullmatch, cells)) and not is_whole(cells)


def are_groups(
    cells: Sequence[str], before: Sequence[tuple[str, Sequence[str]]], after: Sequence[tuple[str, Sequence[str]]]
) -> bool:
    """Whether cells are intervals of two levels or more, beside labels and before columns without any interval."""
    if len(set(cells)) < 2 or not after or not are_intervals(cells):
        return False
    others = {cell for _, column in (*before, *after) for cell in column}
    return not any(is_whole(column) for _, column in before) and not any(are_intervals([cell]) for cell in others)


def are_codes(name: str, cells: Sequence[str]) -> bool:
    """Whether a column may have codes of records: whole numbers of several digits, all different, not called counts."""
    long = is_whole(cells) and min(map(len, cells), default=0) >= DIGITS
    return long and len(set(cells)) == len(cells) >= ROWS and not LIKE_VALUES.fullmatch(name)


def is_longer(cells: Sequence[str], others: Sequence[tuple[str, Sequence[str]]]) -> bool:
    """Whether whole numbers have more digits than those of other columns, of which there are some."""
    lengths = [len(cell) for _, column in others for cell in column if cell.isdecimal()]
    return bool(lengths) and max(lengths) < min(map(len, cells))


def is_increasing(cells: Sequence[str]) -> bool:
    """Whether whole numbers increase from row to row."""
    return all(int(low) < int(high) for low, high in pairwise(cells))


def are_levels(cells: Sequence[str]) -> bool:
    """Whether all cells are whole numbers or intervals."""
    return all(cell.isdecimal() or are_intervals([cell]) for cell in cells)


def with_cells(column: Sequence[str]) -> Sequence[str]:
    """A column without empty cells, as rows of totals may have, unless most are empty."""
    full = [cell for cell in column if cell]
    return full if 2 * len(full) > len(column) else column


def is_of_padded(cells: Sequence[str]) -> bool:
    """Whether all cells are numbers of one length, some with zeros before them, as codes of places are."""
    padded = any(cell[:1] == "0" and len(cell) > 1 for cell in cells)
    return padded and len(set(map(len, cells))) == 1 and is_whole(cells)


def share_columns(names: Sequence[str]) -> list[str]:
    """Columns whose names, of several words, say that they have percentages, rates or averages."""
    several = [name for name in names if "%" in name or len(re.findall(r"[^\W_]+", name)) > 1]
    return [name for name in several if BESIDE.search(name) and not name.endswith(COUNTED)]


def rates_among(names: Sequence[str], absent: Sequence[float], means: Sequence[float]) -> list[str]:
    """The names of lines that have rates, averages or a population, beside others that do not.

    Names are one word, or end with it. A word of a vocabulary may be called "rate" as well, but is ``absent`` from some
    documents, as other words are: that is the share of a line's values that are not positive. Neighbours "lower" and
    "upper" are the ends of an interval if the mean of another line is between theirs.
    """
    if len(names) > FEW_COLUMNS:
        return []
    folded = [name.casefold() for name in names]
    senses = [re.compile(word) for word, others in OTHER_SENSES if any(map(re.compile(others).fullmatch, folded))]
    called = [is_rate(name) and not any(sense.fullmatch(name.casefold()) for sense in senses) for name in names]
    for place, (one, other) in enumerate(pairwise(map(bare, names))):
        low, high = sorted(means[place : place + 2])
        if {one, other} == {"lower", "upper"} and any(low < mean < high for mean in means):
            called[place] = called[place + 1] = True
    are_words = 2 * sum(share >= MANY_ZEROS for share in absent) > len(names)
    rates = [
        name
        for name, rate, share in zip(names, called, absent, strict=True)
        if rate and (share == 0 if are_words else share < MANY_ZEROS)
    ]
    return [] if all(called) else rates


def bare(name: str) -> str:
    """The letters of a name, in lower case."""
    return re.sub(r"[\W\d_]+", "", name).casefold()


def is_rate(name: str) -> bool:
    """Whether a name is that of a rate, an average or a population."""
    if name.endswith(COUNTED) or name == "CI":  # which is Ivory Coast: intervals have two ends
        return False
    name = BAND.sub("", name)
    word = bare(name)
    if word in ("lower", "upper"):
        return False
    words = [each for each in re.split(r"[\W_]+", name) if each.isalpha() and not OF_POPULATIONS.fullmatch(each)]
    is_population = EXPOSURES.fullmatch(word) or (EXPOSURES.fullmatch(" ".join(words)) and not has_name(name))
    ends = (match for match in BESIDE.finditer(name) if RATE_ENDS.match(name, match.end()) or match[0][:4] == "per ")
    return bool(is_population or BESIDE.fullmatch(word) or any(ends))
