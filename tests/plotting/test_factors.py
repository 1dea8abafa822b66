import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

import countveil as cv
from countveil import plotting
from countveil.plotting import factors
from tests.chronicle import YEARS
from tests.plotting.conftest import QUICK


def drawn(ax):
    """(middle, low, high) of every group of intervals on axes, by their lines."""
    found = []
    for each in ax.containers:
        if not hasattr(each, "lines"):
            continue
        middle, _, (bars,) = each.lines
        ends = np.array([segment[:, 0] for segment in bars.get_segments()])
        x = middle.get_xdata() if middle is not None else None
        found.append((x, ends[:, 0], ends[:, 1]))
    return found


def test_topics_are_drawn_as_the_table_has_them(topic_fit):
    ax = plotting.topics(topic_fit, which=[2, 0], n=4, interval=0.8)
    top = topic_fit.top_words(4, 0.8)
    for k, (middle, low, high) in zip([2, 0], drawn(ax), strict=True):
        rows = top[top["topic"] == k]
        np.testing.assert_allclose(middle, rows["probability"])
        np.testing.assert_allclose(low, np.minimum(rows["lower"], rows["probability"]), rtol=1e-6)
        np.testing.assert_allclose(high, rows["upper"], rtol=1e-6)
    words = [*top.loc[top["topic"] == 2, "word"], *top.loc[top["topic"] == 0, "word"]]
    assert [t.get_text() for t in ax.get_yticklabels()] == [w.replace("$", r"\$") for w in words]
    share = topic_fit.parts.prevalences()["prevalence"][2]
    assert f"topic 2: {share:.1%} of expected counts" in [t.get_text() for t in ax.texts]
    assert "80% intervals" in ax.get_xlabel()


def test_the_modes_of_a_tensor_and_the_actors_of_a_community(tensor_fit, block_fit):
    ax = plotting.topics(tensor_fit, which=[0], n=3, mode="what")
    assert {t.get_text() for t in ax.get_yticklabels()} <= set("abcd")
    assert {t.get_text() for t in plotting.topics(tensor_fit, n=3).get_yticklabels()} == {"x", "y", "z"}
    assert ax.texts[0].get_text().startswith("component 0:")
    assert plotting.topics(block_fit).texts[0].get_text().startswith("community 0:")


def test_prevalence_draws_the_shares_of_the_table(topic_fit, tensor_fit, block_fit):
    for fit in (topic_fit, tensor_fit, block_fit):
        ax, table = plotting.prevalence(fit, 0.5), fit.parts.prevalences(0.5)
        widths = [bar.get_width() for bar in ax.patches]
        np.testing.assert_allclose(widths, table["prevalence"])
        _, low, high = drawn(ax)[0]
        np.testing.assert_allclose(high, np.maximum(table["upper"], table["prevalence"]))  # a mean may lie beyond
        assert (low < high).all()
    sizes = topic_fit.posterior["posterior"]["theta"].sum("doc").stack(s=("chain", "draw"))
    shares = (sizes / sizes.sum("topic")).quantile([0.25, 0.75], "s").to_numpy()
    np.testing.assert_allclose(topic_fit.parts.prevalences(0.5)[["lower", "upper"]].T, shares, rtol=1e-5)


def test_a_model_that_the_pictures_do_not_know_is_drawn_by_its_own_words(chronicle):
    ax, found = plotting.topics(chronicle, n=3), chronicle.parts.members("year", 3)
    assert {t.get_text() for t in ax.get_yticklabels()} == set(YEARS)
    for k, (middle, _, high) in enumerate(drawn(ax)):
        np.testing.assert_allclose(middle, found.loc[found["component"] == k, "probability"])
        np.testing.assert_allclose(high, found.loc[found["component"] == k, "upper"], rtol=1e-6)
    assert ax.texts[0].get_text().startswith("story 0: ")
    assert plotting.topics(chronicle, which=[1], mode="doc").texts[0].get_text().startswith("story 1: ")
    assert [t.get_text() for t in plotting.prevalence(chronicle).get_yticklabels()] == ["story 0", "story 1"]


def test_the_kind_of_component_is_that_of_the_mode():
    counts = np.random.default_rng(1).poisson(2.0, (5, 4))
    fit = cv.PoissonFactorization(
        "ic,jd,cd->ij", {"c": 2, "d": 3}, dims={"c": "club", "d": "den"}, alpha=0.3, **QUICK
    ).fit(counts)
    assert len(plotting.prevalence(fit).patches) == 2
    ax = plotting.prevalence(fit, mode="j")
    assert [t.get_text() for t in ax.get_yticklabels()] == ["den 0", "den 1", "den 2"]
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], fit.parts.prevalences(axis="j")["prevalence"])
    assert plotting.topics(fit, mode="j").texts[2].get_text().startswith("den 2: ")


def test_axes_that_are_given_are_drawn_on_and_returned(topic_fit):
    ax = Figure().subplots()
    assert plotting.topics(topic_fit, ax=ax) is ax
    with pytest.raises(TypeError, match="ax must be matplotlib axes or None, got str"):
        plotting.topics(topic_fit, ax="here")


def test_labels_are_never_taken_for_mathematics(topic_fit):
    ax = plotting.topics(topic_fit, n=9)
    assert r"\$x_1\$" in [t.get_text() for t in ax.get_yticklabels()]
    ax.figure.canvas.draw()


def test_what_is_not_there_is_refused(topic_fit):
    with pytest.raises(ValueError, match=r"which must be numbers from 0 to 2, got \[3\]"):
        plotting.topics(topic_fit, which=[0, 3])
    with pytest.raises(ValueError, match=r"which must be .* got \[\]"):
        plotting.topics(topic_fit, which=[])
    with pytest.raises(ValueError, match=r"which must be .* got \[0.5, True, 'a', \[0\], 9\]"):
        plotting.topics(topic_fit, which=[0.5, 1, True, "a", [0], np.int64(9)])
    with pytest.raises(ValueError, match=r"mode must be one of \['doc', 'word'\], got 'what'"):
        plotting.topics(topic_fit, mode="what")
    for draw in (plotting.topics, plotting.prevalence):
        with pytest.raises(TypeError, match="fit must be a model of countveil, got dict"):
            draw({})
        with pytest.raises(NotFittedError, match="not fitted yet"):
            draw(cv.TopicModel(2))


def test_components_that_cannot_be_listed_are_not_drawn():
    model = cv.PoissonFactorization("dkt,vkt->dv", {"k": 2, "t": 2}, alpha=0.3, **QUICK)
    fit = model.fit(np.random.default_rng(1).poisson(2.0, (5, 4)))
    for draw in (plotting.topics, plotting.prevalence):
        with pytest.raises(
            ValueError, match=r"whose members can be listed, got a PoissonFactorization, which has none"
        ):
            draw(fit)


def test_without_matplotlib_the_error_says_what_to_install(topic_fit, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install '\.\[plots\]'"):
        plotting.topics(topic_fit)


def test_a_figure_of_some_topics_says_of_how_many(topic_fit, monkeypatch):
    monkeypatch.setattr(factors, "FEW", 2)
    assert plotting.topics(topic_fit).get_title() == ("2 of 3 are shown: the best supported first, then the largest")
    assert plotting.topics(topic_fit, which=[2]).get_title() == "1 of 3 are shown: 2"
    assert plotting.topics(topic_fit, which=[2, 0, 1, 2]).get_title() == ""


SHORT = {"draws": 20, "tune": 20, "chains": 2, "seed": 1, "threads": 1, "progress": False}


def test_cells_are_those_of_the_table():
    rng = np.random.default_rng(1)
    counts = pd.DataFrame(rng.poisson(30 * rng.dirichlet([0.3] * 3, 30) @ rng.dirichlet([0.2] * 8, 3)))
    fit = cv.TopicModel(3, **SHORT).fit(cv.PrivatizedCounts(counts, 0.2))
    fit.parts.relabel({1: "trade"})
    table, ax = fit.documents.correlations(), plotting.correlations(fit)
    drawn = np.ma.filled(ax.images[0].get_array(), np.nan)
    for row in table.itertuples():
        assert drawn[row.topic, row.other] == drawn[row.other, row.topic] == row.correlation
    assert np.isnan(np.diag(drawn)).all()
    assert "trade" in ax.get_yticklabels()[1].get_text()
    said = {(text.get_position(), text.get_text()): text.get_fontweight() for text in ax.texts}
    assert len(said) == 2 * len(table)
    first = table.iloc[0]
    sure = not first["lower"] <= 0.0 <= first["upper"]
    place = (first["topic"], first["other"])
    assert said[place, f"{first['correlation']:.2f}"] == ("bold" if sure else "normal")


def test_others_are_refused():
    with pytest.raises(TypeError, match="fit must be a TopicModel"):
        plotting.correlations("topics")
    one = cv.TopicModel(1, **SHORT).fit(cv.PrivatizedCounts(np.ones((4, 3), dtype=int), 0.2))
    with pytest.raises(ValueError, match="two topics or more"):
        plotting.correlations(one)
