"""Real views of Wikipedia's pages by country and day, across the change of their mechanism.

python benchmarks/real_views.py FILE [--draws N] [--figure PNG] [--since DAY] [--weeks N] [--least DAYS]

FILE is a .csv with columns iso2, project, page_id, page_title, date and pageviews of Wikimedia's differentially private
views. Taken are --weeks weeks from the Monday --since on, and series (one page in one country) that were published on
--least days or more both before the change and since. Days without any row are masked. Two-sided geometric noise of
scale 30, cut at 450, was followed by discrete Gaussian noise cut at 90 on 6 February 2023, in the United States in
September. The rate of a series on a day is its level, times one of the week and one of the day of the week; counts are
bursty, with a dispersion for each series. Chains begin at naive point estimates of the weeks since the change.

Three fits: with sigma 10, with sigma 18.2, and, with sigma 10, without the values below 450 of the last --hidden weeks
outside the United States, which are then known: leaving out values below 450 is itself a mechanism. Printed are mean
views a day by country in the ten and in the four weeks before the change and since, as they were published and as
fitted (true counts given all reports, mean and 90% interval), and what was left out and found again.
"""

import argparse
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.dates import DateFormatter, MonthLocator
from PIL import Image

import countveil as cv
from countveil.plotting import style

m = cv.mechanisms
CHANGE, CHANGE_US = np.datetime64("2023-02-06"), np.datetime64("2023-09-20")
OLD = m.Thresholded(m.TwoSidedGeometric(np.exp(-1 / 30)), 449)
COMPONENTS, TABLES, SEED = 1, 200, 1
SHOWN = {"US": "United States", "DE": "Germany", "JP": "Japan", "FR": "France"}
FACTORS = [f"factor_mode{i}" for i in range(3)]


def read(file: str, since: str, weeks: int, least: int) -> tuple[pd.DataFrame, np.ndarray]:
    """(views by series and day, NaN where none were published; which days have no row at all)."""
    rows = pd.read_csv(file, parse_dates=["date"], keep_default_na=False)
    days = pd.date_range(since, periods=7 * weeks)
    rows = rows[rows["date"].isin(days)]
    series = rows["iso2"] + " " + rows["project"].str.removesuffix(".wikipedia") + ": " + rows["page_title"]
    wide = rows.assign(series=series).pivot(index="series", columns="date", values="pageviews")
    missing = np.array(~days.isin(rows["date"]))
    before = wide.columns < CHANGE
    often = (wide.loc[:, before].notna().sum(axis=1) >= least) & (wide.loc[:, ~before].notna().sum(axis=1) >= least)
    return wide[often].reindex(columns=days), missing


def mechanisms(views: pd.DataFrame, sigma: float, hidden: np.ndarray) -> np.ndarray:
    """What was done to each cell; and where values below 450 are left out on purpose."""
    late = m.Thresholded(m.DiscreteGaussian(sigma), 89)
    cut = m.Thresholded(m.DiscreteGaussian(sigma), 449)
    states = (countries_of(views) == "US")[:, None]
    new = views.columns.to_numpy() >= np.where(states, CHANGE_US, CHANGE)
    found = np.where(new, late, OLD)
    found[new & hidden] = cut
    return found


def countries_of(views: pd.DataFrame) -> np.ndarray:
    """The country of every series."""
    return views.index.str[:2].to_numpy()


def begin(views: np.ndarray, late: np.ndarray) -> dict[str, np.ndarray]:
    """Factors of the weeks since the change as if what was not published were zero, each week the mean of theirs."""
    counts = np.nan_to_num(views[:, late]).astype(np.int64)
    model = cv.TensorModel(COMPONENTS, method=cv.EM(max_iter=100), seed=SEED, threads=1, progress=False)
    found = model.fit(cv.NaiveCounts(counts)).posterior.posterior
    series, week, day = (np.asarray(found[name], dtype=float)[0, 0] for name in FACTORS)
    return dict(zip(FACTORS, (series, np.tile(week.mean(axis=0), (late.size, 1)), day), strict=True))


def fitted(views: pd.DataFrame, missing: np.ndarray, sigma: float, hidden: np.ndarray, draws: int) -> Any:
    """(tables of true counts given all reports (tables, series, days), the fit, processor time)."""
    started = time.process_time()
    values = views.to_numpy().copy()
    values[hidden & (values < 450)] = np.nan
    shape = (len(values), values.shape[1] // 7, 7)
    mask = np.broadcast_to(missing, values.shape).reshape(shape)
    by_cell = mechanisms(views, sigma, hidden).reshape(shape)
    data = cv.Reports(values.reshape(shape), by_cell, mask)
    late = views.columns.to_numpy()[::7] >= CHANGE
    model = cv.TensorModel(
        COMPONENTS,
        likelihood="negative-binomial",
        dispersion="row",
        start=begin(values.reshape(shape), late),
        draws=draws,
        tune=draws,
        chains=2,
        threads=1,
        seed=SEED,
        progress=False,
    )
    fit = model.fit(data)
    tables = np.asarray(fit.predict_counts(TABLES, np.random.default_rng(SEED), data))
    return tables.reshape(TABLES, *values.shape), fit, time.process_time() - started


def interval(values: np.ndarray, decimals: int = 0) -> str:
    """Mean and 90% interval."""
    low, high = np.quantile(values, [0.05, 0.95])
    return f"{values.mean():.{decimals}f} ({low:.{decimals}f} to {high:.{decimals}f})"


def by_country(views: pd.DataFrame, missing: np.ndarray, tables: dict[float, np.ndarray], weeks: int) -> None:
    """Mean views a day in some weeks before the change and since, in the countries of most values and in all."""
    countries, away = (countries_of(views), (views.columns.to_numpy() - CHANGE).astype("timedelta64[D]").astype(int))
    halves = [(-7 * weeks <= away) & (away < 0) & ~missing, (away >= 0) & (away < 7 * weeks) & ~missing]
    values = views.notna().groupby(countries).sum().sum(axis=1).sort_values(ascending=False)
    print(f"\n{weeks} weeks before and since")
    print("| country | series | published before | since | sigma | fitted before | since | ratio |")
    for name in [*values.index[:8], "all but US", "all"]:
        chosen = (countries == name) | (name == "all") | ((name == "all but US") & (countries != "US"))
        own = views.to_numpy()[chosen]
        published = " | ".join(f"{np.nansum(own[:, half]) / half.sum():.0f}" for half in halves)
        for sigma, counts in tables.items():
            before, since = (counts[:, chosen][:, :, half].sum(axis=(1, 2)) / half.sum() for half in halves)
            print(
                f"| {name} | {chosen.sum()} | {published} | {sigma} | {interval(before)} | {interval(since)} "
                f"| {interval(since / before, 2)} |",
                flush=True,
            )


def of_absent(views: pd.DataFrame, missing: np.ndarray, counts: np.ndarray) -> None:
    """What fitted views of cells without a value are, by mechanism."""
    absent = views.isna().to_numpy() & ~missing
    old = mechanisms(views, 10.0, np.zeros(absent.shape, dtype=bool)) == OLD
    print(
        "\n| cut | cells | absent | mean of a day's views, 5% to 95% of cells and draws | share of all fitted views |"
    )
    for cut, under in ((450, old & ~missing), (90, ~old & ~missing)):
        inside = counts[:, absent & under]
        low, high = np.quantile(inside, [0.05, 0.95])
        share = 100 * inside.sum(axis=1) / counts[:, under].sum(axis=1)
        print(
            f"| {cut} | {under.sum():,} | {(absent & under).sum():,} | {inside.mean():.0f} ({low:.0f} to {high:.0f}) "
            f"| {interval(share)}% |",
            flush=True,
        )


def found_again(views: pd.DataFrame, hidden: np.ndarray, tables: np.ndarray, full: np.ndarray) -> None:
    """Totals of all cells below 450 where values were left out on purpose: fitted without them, and with them.

    Those that never had a value are included: which had one was decided by the values themselves.
    """
    values, countries = views.to_numpy(), countries_of(views)
    below = hidden & ~(values >= 450)
    print("\n| country | cells below 450 | values left out | their total | fitted without them | fitted with them |")
    for name in [*np.unique(countries[below.any(axis=1)]), "all"]:
        chosen = below & ((countries == name) | (name == "all"))[:, None]
        without, beside = (drawn[:, chosen].sum(axis=1) for drawn in (tables, full))
        left_out = values[chosen][~np.isnan(values[chosen])]
        print(
            f"| {name} | {chosen.sum()} | {left_out.size} | {left_out.sum():.0f} | {interval(without)} "
            f"| {interval(beside)} |",
            flush=True,
        )


def draw_figure(views: pd.DataFrame, missing: np.ndarray, tables: dict[float, np.ndarray], file: str) -> None:
    """Mean views a day by week in four countries: published, and fitted with both values of sigma."""
    countries, at = countries_of(views), views.columns[::7]
    figure = style.new_figure(8.6, 5.0)
    for place, (code, name) in enumerate(SHOWN.items()):
        ax, chosen = figure.add_subplot(2, 2, place + 1), countries == code
        style.tidy(ax)
        published = np.nan_to_num(views.to_numpy()[chosen]).sum(axis=0)
        ax.plot(at, by_week(published, missing), color=style.VERMILION, label="published")
        for (sigma, counts), colour, line in zip(tables.items(), (style.BLUE, style.GREEN), ("-", "--"), strict=True):
            drawn = by_week(counts[:, chosen].sum(axis=1), missing)
            ax.fill_between(at, *np.quantile(drawn, [0.05, 0.95], axis=0), color=colour, alpha=0.25, linewidth=0)
            ax.plot(at, drawn.mean(axis=0), line, color=colour, label=f"fitted, sigma {sigma:g}")
        ax.axvline(CHANGE, color=style.GREY, linewidth=1)
        ax.set_ylim(bottom=0)
        ax.set_title(f"{name}, {chosen.sum()} series" if chosen.sum() > 1 else f"{name}, one series", fontsize=10)
        ax.tick_params(labelsize=8)
        ax.xaxis.set_major_locator(MonthLocator())
        ax.xaxis.set_major_formatter(DateFormatter("%b %Y"))
        if place == 0:
            ax.legend(frameon=False, fontsize=8, loc="lower left")
        if place % 2 == 0:
            ax.set_ylabel("views a day, by week", fontsize=9)
    figure.savefig(file, dpi=80)
    with Image.open(file) as drawn:
        few = drawn.convert("RGB").quantize(96)  # colours: a third of the size
    few.save(file, optimize=True)


def by_week(daily: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Means over the days of each week that are not missing."""
    there = np.where(missing, 0.0, 1.0)
    in_weeks = (daily * there).reshape(*daily.shape[:-1], -1, 7).sum(axis=-1)
    return in_weeks / there.reshape(-1, 7).sum(axis=1)


def main() -> None:
    """Three fits."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--figure")
    parser.add_argument("--since", default="2022-11-28")
    parser.add_argument("--weeks", type=int, default=20)
    parser.add_argument("--least", type=int, default=5)
    parser.add_argument("--hidden", type=int, default=5)
    asked = parser.parse_args()
    views, missing = read(asked.file, asked.since, asked.weeks, asked.least)
    without, n_values = [str(day)[:10] for day in views.columns[missing]], views.notna().to_numpy().sum()
    print(f"{views.shape[0]} series, {views.shape[1]} days, {n_values:,} values, no rows: {without}")
    nothing, tables = np.zeros(views.shape, dtype=bool), {}
    for sigma in (10.0, 18.2):
        tables[sigma], fit, seconds = fitted(views, missing, sigma, nothing, asked.draws)
        middle = fit.dispersions()["variance_over_mean"].median()
        print(
            f"sigma {sigma}: {seconds:.0f} s of processor time, {fit.diagnostics().state}, variance over mean "
            f"{middle:.1f} in the median series",
            flush=True,
        )
    for weeks in (10, 4):
        by_country(views, missing, tables, weeks)
    of_absent(views, missing, tables[10.0])
    if asked.figure:
        draw_figure(views, missing, tables, asked.figure)
    hidden = nothing.copy()
    hidden[countries_of(views) != "US", -7 * asked.hidden :] = True
    again, _, _ = fitted(views, missing, 10.0, hidden, asked.draws)
    found_again(views, hidden, again, tables[10.0])


if __name__ == "__main__":
    main()
