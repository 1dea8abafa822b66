"""Rules that publishers of tables have documented, by name."""

import math
from fractions import Fraction
from typing import NamedTuple

from countveil.privacy._text import shown
from countveil.privacy.mechanisms.base import Mechanism
from countveil.privacy.mechanisms.composed import Composed
from countveil.privacy.mechanisms.gaussian import DiscreteGaussian
from countveil.privacy.mechanisms.hiding import Suppression
from countveil.privacy.mechanisms.rounding import RandomRounding, Rounding
from countveil.privacy.mechanisms.thresholded import Thresholded
from countveil.privacy.mechanisms.two_sided_geometric import TwoSidedGeometric


class Preset(NamedTuple):
    """A published rule: its mechanism, the tables that it is for, and where it is documented."""

    mechanism: Mechanism
    tables: str
    source: str
    omits_zeros: bool = False  # whether a cell without a row in its downloads is a zero


PRESETS = {
    "nhs-hes": Preset(
        Composed(Suppression(8), Rounding(5)),
        "Hospital Episode Statistics of NHS England below national level, from September 2018",
        "https://digital.nhs.uk/data-and-information/data-tools-and-services/data-services/"
        "hospital-episode-statistics/change-to-disclosure-control-methodology-for-hes-and-ecds-from-september-2018",
    ),
    "opensafely-midpoint6": Preset(
        Rounding(6, "midpoint"),
        "counts from OpenSAFELY with midpoint 6 rounding",
        "https://docs.opensafely.org/releasing-files/",
    ),
    "cdc-wonder": Preset(
        Suppression(10),
        "deaths from CDC WONDER below national level: 1 to 9 hidden (older databases hide zeros as well)",
        "https://wonder.cdc.gov/wonder/help/mcd-provisional.html",
        omits_zeros=True,
    ),
    "cms": Preset(
        Suppression(11),
        "tables made from Medicare and Medicaid data of the CMS",
        "https://www.hhs.gov/guidance/document/cms-cell-suppression-policy",
    ),
    "stats-nz": Preset(
        RandomRounding(3),
        "census tables of Stats NZ, whose counts are all rounded at random; hidden ones need a bound",
        "http://m.stats.govt.nz/Census/2013-census/methodology/confidentiality-how-applied.aspx",
    ),
    "statcan": Preset(
        RandomRounding(5),
        "census tables of Statistics Canada",
        "https://www.census2011.gc.ca/census-recensement/2011/ref/DQ-QD/conf-eng.cfm",
    ),
    "wikimedia-dp": Preset(
        Thresholded(DiscreteGaussian(Fraction(10)), Fraction(89)),
        "page views by country of the Wikimedia Foundation from 6 February 2023 (the smallest published value is 90)",
        "https://analytics.wikimedia.org/published/datasets/country_project_page/00_README.html",
    ),
    "wikimedia-dp-historical": Preset(
        Thresholded(TwoSidedGeometric(math.exp(-1 / 30)), Fraction(449)),
        "the same from 9 February 2017 to 5 February 2023 (the smallest published value is 450)",
        "https://analytics.wikimedia.org/published/datasets/country_project_page_historical/00_README.html",
    ),
}
"""{name: rule}. A publisher may change its rule, and makes exceptions: compare the notes of the table itself."""


def preset(name: str) -> Mechanism:
    """The mechanism of a published rule, such as "nhs-hes": ``PRESETS`` has the names and where rules are documented.

    Raises ValueError for another name.
    """
    if name not in PRESETS:
        raise ValueError(f"name must be one of {', '.join(PRESETS)}, got {shown(name)}")
    return PRESETS[name].mechanism
