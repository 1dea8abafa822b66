"""Numbers of components that are chosen: by the scores of short fits, with a seed, and for one fit alone."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

import countveil as cv
from countveil.fit import choosing
from countveil.fit.choosing import candidates
from countveil.report.baselines import naive_fit
from countveil.selection import Comparison
from countveil.selection.candidates import candidates_of
from tests.joint import fitted, short_choices

pytestmark = pytest.mark.long

QUICK = {"chains": 2, "draws": 8, "tune": 8, "threads": 1, "progress": False}


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(1)
    topics = np.kron(np.eye(2), np.full(8, 1 / 8))
    return rng.poisson(60.0 * rng.dirichlet(np.full(2, 0.2), 30) @ topics)


@pytest.fixture
def data(counts):
    return cv.PrivatizedCounts(counts, 0.2)


@pytest.fixture
def small(monkeypatch):
    """Few and short fits."""
    short_choices(monkeypatch)


@pytest.fixture(scope="module")
def chosen(counts):
    """A fit whose number was chosen; nothing may change it."""
    with pytest.MonkeyPatch.context() as patched:
        short_choices(patched)
        return fitted(cv.TopicModel("auto", seed=3, **QUICK), cv.PrivatizedCounts(counts, 0.2))


@pytest.mark.usefixtures("small")
def test_the_number_with_the_highest_score_is_fitted(data, chosen):
    fit = chosen
    table = fit.selection_.table
    assert table["n_topics"].tolist() == [1, 2, 2, 2]
    assert (table["seconds"] > 0.0).all()
    assert table["likelihood"].tolist()[2:] == ["poisson", None]
    assert table["dispersion"].tolist()[2:] == [None, "global"]
    own = ["dispersion by column", "Poisson", "one dispersion"]
    assert table["model"].tolist() == ["n_topics=1", *(f"n_topics=2, {each}" for each in own)]
    assert fit.n_topics_ == table["n_topics"][table["score"].idxmax()] == 2
    chosen = fit.selection_.differs[table["score"].idxmax()]
    usual = {"likelihood": "negative-binomial", "dispersion": "column"}
    expected = chosen if "likelihood" in chosen else usual | chosen
    assert fit.likelihood_ == {"dispersion": None} | {key: expected[key] for key in usual if key in expected}
    assert fit.posterior["posterior"].sizes["topic"] == fit.n_topics_
    assert (fit.n_topics, fit.get_params()["n_topics"], clone(fit).n_topics) == ("auto", "auto", "auto")
    second = table.sort_values("score").iloc[-2]
    said = f"{fit.selection_.best} was chosen by held-out reports; {second['model']} came next, "
    assert said + f"{-second['difference']:.2g} lower per 1,000 cells." in fit.diagnostics().verdict
    # As the same number would be fitted, and again by the same seed with other threads.
    same = fitted(cv.TopicModel(fit.n_topics_, seed=3, **QUICK, **fit.likelihood_), data)
    assert same.posterior["posterior"].equals(fit.posterior["posterior"])
    assert not hasattr(same, "selection_")
    again = fitted(cv.TopicModel("auto", seed=3, **QUICK | {"threads": 2}), data)
    np.testing.assert_array_equal(again.selection_.scores, fit.selection_.scores)
    assert (again.selection_.scores != fitted(clone(fit).set_params(seed=4), data).selection_.scores).any()
    # Two of five folds are held out and scored.
    assert set(fit.selection_.folds) == {0, 1}
    assert fit.selection_.rows.size == pytest.approx(0.4 * 480, abs=1)


def test_a_number_that_was_chosen_is_saved_and_the_comparison_is_not(data, chosen, tmp_path):
    fit = chosen
    fit.save(tmp_path / "fit.nc")
    again = cv.TopicModel.load(tmp_path / "fit.nc")
    assert (again.n_topics, again.n_topics_) == ("auto", fit.n_topics_)
    assert not hasattr(again, "selection_")
    assert again.diagnostics().verdict == fit.diagnostics().verdict
    assert again.rate().equals(fit.rate())
    other = fitted(again.set_params(n_topics=3), data)
    assert other.n_topics_ == 3
    assert "chosen" not in other.diagnostics().verdict


@pytest.mark.parametrize(
    ("shape", "background", "number"),
    [((40, 2), False, 2), ((40, 1), False, 1), ((40, 1), True, 2), ((12, 2, 4), False, 8), ((9, 30), False, 10)],
)
def test_a_dynamic_model_of_few_series_has_few_components(shape, background, number, tmp_path):
    data = cv.PrivatizedCounts(np.random.default_rng(1).poisson(5.0, shape), 0.2)
    fit = fitted(cv.DynamicModel(background=background, seed=1, **QUICK), data)
    assert (fit.n_components, fit.n_components_) == (None, number)
    assert fit.posterior["posterior"].sizes["component"] == number
    fit.save(tmp_path / "fit.nc")
    again = cv.DynamicModel.load(tmp_path / "fit.nc")
    assert (again.n_components, again.n_components_) == (None, number)
    assert choosing.own_choice(again)["n_components"] == number
    with pytest.raises(ValueError, match="n_components must be a number, got None: only fit chooses one"):
        choosing.size_of(clone(fit))


def test_a_dynamic_model_is_compared_with_its_usual_components():
    data = cv.PrivatizedCounts(np.random.default_rng(1).poisson(5.0, (12, 3)), 0.2)
    models = {"usual": cv.DynamicModel(), "steady": cv.DynamicModel(steady=True), "one": cv.DynamicModel(1)}
    found = candidates_of(data, models, QUICK)
    assert [each.model.n_components for each in found] == [None, None, 1]
    assert found[0].facts == candidates_of(data, [cv.DynamicModel(3)], QUICK)[0].facts.replace(
        '"n_components": 3', '"n_components": null'
    )
    table = cv.compare(data, models, draws=4, tune=4, seed=1, progress=False).table
    assert sorted(table["model"]) == ["one", "steady", "usual"]


@pytest.mark.parametrize(
    ("means", "asked"),
    [
        ({5: -3.0, 10: -1.0, 20: -1.5}, [5, 10, 20]),
        ({5: -3.0, 10: -2.0, 20: -1.5, 50: -1.7}, [5, 10, 20, 50]),
        ({5: -3.0, 10: -2.0, 20: -1.5, 50: -1.2, 100: -1.1}, [5, 10, 20, 50, 100]),
        ({5: -3.0, 10: -1.0, 20: -1.0005, 50: -1.0, 100: -1.2}, [5, 10, 20, 50, 100]),  # 20 is tied with 10
    ],
)
def test_many_components_are_left_out_where_fewer_are_clearly_better(monkeypatch, means, asked):
    rng, seen = np.random.default_rng(1), []

    def quickly(observed, models, folds, seed, threads, progress):
        sizes = [model.n_topics for model in models.values()]
        seen.extend(sizes)
        scores = np.array([means[n] + 0.01 * rng.standard_normal(400) for n in sizes])
        rows, columns = np.divmod(np.arange(400), 20)
        none = tuple({} for _ in sizes)
        return Comparison(tuple(models), scores, rows, columns, 0 * rows, np.ones(len(sizes)), none, seed)

    monkeypatch.setattr(choosing, "compare_quickly", quickly)
    data = cv.PrivatizedCounts(rng.poisson(1.0, (250, 250)), 0.2)
    model = cv.TopicModel("auto", likelihood="poisson", seed=1, **QUICK)
    model.seed_ = 1
    choosing.choose(model, data)
    assert seen == asked
    assert means[model.n_topics_] > max(means.values()) - 0.01
    assert model.selection_.table["n_topics"].tolist() == asked


@pytest.mark.usefixtures("small")
def test_every_model_with_a_number_can_choose_it(counts):
    square = cv.PrivatizedCounts(counts[:16], 0.2)
    blocks = fitted(cv.BlockModel("auto", seed=1, **QUICK), square)
    assert blocks.selection_.table["n_communities"].tolist()[:2] == [1, 2]
    assert blocks.selection_.table["dispersion"].tolist()[2:] == [None, "global", "row"]
    assert blocks.blocks_.shape == (blocks.n_communities_, blocks.n_communities_)
    tensor = cv.PrivatizedCounts(counts.reshape(30, 4, 4), 0.2)
    found = fitted(cv.TensorModel("auto", seed=1, method=cv.EM(max_iter=4), threads=1), tensor)
    assert found.n_components_ == found.posterior["posterior"].sizes["component"]
    assert fitted(cv.TensorModel(3, seed=1, **QUICK), tensor).n_components_ == 3


@pytest.mark.usefixtures("small")
def test_the_naive_fit_beside_it_has_the_same_number(counts):
    release = cv.privatize(counts, cv.PrivacyLevel(2, 1))
    fit = fitted(cv.TopicModel("auto", seed=3, **QUICK), release)
    other = naive_fit(fit, release)
    assert other.n_topics_ == fit.n_topics_
    assert str(other.model_.likelihood) == str(fit.model_.likelihood)
    assert not hasattr(other, "selection_")


def test_numbers_are_those_that_the_data_allow(data):
    assert candidates((395, 1000)) == [5, 10, 20, 50, 100]
    assert candidates((161, 161)) == [5, 10, 20, 50]
    assert candidates((40, 24)) == [1, 2, 3, 5, 10]
    assert candidates((16, 16)) == [1, 2, 3, 5]
    assert candidates((2, 1)) == [1]
    assert candidates((30, 4, 4)) == [1, 2, 3, 5, 10]
    one = cv.PrivatizedCounts(np.array([[3], [1]]), 0.2)
    fit = fitted(cv.TopicModel("auto", seed=1, **QUICK), one)
    assert (fit.n_topics_, hasattr(fit, "selection_")) == (1, False)


def test_what_cannot_be_chosen_is_refused(data, tmp_path):
    with pytest.raises(ValueError, match=r"n_topics must be one number, 'auto', or a list of 2 to 10 .* got 'many'$"):
        cv.TopicModel("many").fit(data)
    with pytest.raises(ValueError, match="n_topics must be a whole number of at least 1, got 0"):
        cv.TopicModel(0).fit(data)
    with pytest.raises(ValueError, match="n_topics must be a number, got 'auto': only fit chooses one"):
        cv.TopicModel("auto", method="svi").partial_fit(data)
    with pytest.raises(ValueError, match="n_topics must be a number, got 'auto': only fit chooses one"):
        cv.compare(data, [cv.TopicModel("auto"), cv.TopicModel(2)])
    cv.privatize_to_files(np.ones((4, 30), dtype=int), cv.PrivacyLevel(1, 1), tmp_path / "parts", rows_per_file=2)
    with pytest.raises(ValueError, match="n_topics must be a number for data on disk, got 'auto'"):
        cv.TopicModel("auto", method="svi").fit(cv.ReleaseFiles(tmp_path / "parts"))


@pytest.mark.usefixtures("small")
def test_a_fit_that_fails_keeps_the_number_that_it_had(data, tmp_path):
    fit = fitted(cv.TopicModel(3, seed=3, **QUICK), data)
    fit.set_params(n_topics="auto")
    assert "chosen" not in fit.diagnostics().verdict  # another fit will be
    (tmp_path / "c.npz").write_text("precious")
    with pytest.raises(FileExistsError, match="which exists: give resume=True"):
        fit.fit(data, checkpoint=tmp_path / "c.npz")
    with pytest.raises(TypeError):
        fit.fit(np.ones((4, 4)))
    assert (fit.n_topics_, hasattr(fit, "selection_")) == (3, False)


@pytest.mark.usefixtures("small")
def test_a_checkpoint_is_checked_before_anything_is_fitted(data, tmp_path, monkeypatch):
    monkeypatch.setattr(choosing, "compare_quickly", None)
    with pytest.raises(FileNotFoundError, match="must go to a folder that exists"):
        cv.TopicModel("auto", seed=3, **QUICK).fit(data, checkpoint=tmp_path / "no" / "c.npz")


def test_where_there_is_nothing_to_choose_from_nothing_was_chosen():
    few = fitted(cv.TopicModel("auto", seed=3, **QUICK), cv.PrivatizedCounts([[1, 2, 0, 1, 3]], 0.2))
    mask = np.ones((6, 8), dtype=bool)
    mask[0, :4] = False  # fewer cells than folds
    hidden = fitted(cv.TopicModel("auto", seed=3, **QUICK), cv.PrivatizedCounts(np.ones((6, 8), int), 0.2, mask))
    for fit in (few, hidden):
        assert fit.n_topics_ == 1
        assert not hasattr(fit, "selection_")
        assert "chosen" not in fit.diagnostics().verdict


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (cv.TopicModel("auto"), ["Poisson", "one dispersion"]),
        (cv.BlockModel("auto"), ["Poisson", "one dispersion", "dispersion by row"]),
        (cv.BlockModel("auto", directed=False), ["Poisson"]),
        (cv.TopicModel("auto", method="em"), []),
        (cv.TopicModel("auto", likelihood="poisson"), []),
        (cv.TopicModel("auto", dispersion=0.4), []),
    ],
)
def test_likelihoods_are_tried_where_none_is_given(model, names):
    assert list(choosing.other_likelihoods(model)) == names


@pytest.mark.usefixtures("small")
def test_the_chosen_likelihood_is_fitted_and_kept(counts, tmp_path, monkeypatch):
    square = cv.PrivatizedCounts(counts[:16], 0.2)
    monkeypatch.setattr(cv.selection.Comparison, "best", property(lambda self: self.names[-1]))
    fit = fitted(cv.BlockModel("auto", seed=1, **QUICK), square)
    assert fit.model_.likelihood.dispersion == "row"
    assert fit.posterior["posterior"]["p"].dims[-1] == "sender"
    fit.save(tmp_path / "fit.nc")
    again = cv.BlockModel.load(tmp_path / "fit.nc")
    assert choosing.own_choice(again) == {"n_communities": 2, "likelihood": "negative-binomial", "dispersion": "row"}
    assert fitted(again.set_params(n_communities=1), square).model_.likelihood.dispersion == "column"


def test_another_method_or_likelihood_after_a_choice_is_judged_by_itself(data, chosen, tmp_path):
    chosen.save(tmp_path / "fit.nc")
    fit = cv.TopicModel.load(tmp_path / "fit.nc")
    fit.likelihood_ = {"likelihood": "negative-binomial", "dispersion": "global"}
    fit.set_params(n_topics=3)
    assert fit._likelihood().dispersion == "column"
    assert choosing.chosen_likelihood(fit).dispersion == "column"
    fit.set_params(n_topics="auto", method="svi")
    fit._check_parameters()  # svi takes Poisson counts alone, and nothing else was asked for
    assert fit._likelihood().name == "poisson"


@pytest.mark.usefixtures("small")
def test_the_chosen_likelihood_is_that_of_every_model(counts, monkeypatch):
    monkeypatch.setattr(
        cv.selection.Comparison,
        "best",
        property(lambda self: next((each for each in self.names if "Poisson" in each), self.names[-1])),
    )
    cube = cv.PrivatizedCounts(counts.reshape(30, 4, 4), 0.2)
    for model in (cv.DynamicModel, cv.TensorModel):
        fit = fitted(model("auto", seed=1, **QUICK), cube)
        assert (fit.model_.likelihood.name, fit.n_components_) == ("poisson", 2)
        assert fit.likelihood_ == {"likelihood": "poisson", "dispersion": None}


def test_a_likelihood_of_one_s_own_is_no_choice():
    """No parameter could name it in another fit."""
    model = cv.TopicModel("auto")
    sizes = SimpleNamespace(sizes={"k": 3})
    for name, kept in (("bursts", False), ("poisson", True)):
        likelihood = SimpleNamespace(name=name, settings={})
        choosing.keep_choice(
            model, SimpleNamespace(rows=sizes, columns=SimpleNamespace(sizes={}), likelihood=likelihood)
        )
        assert model.n_topics_ == 3
        assert hasattr(model, "likelihood_") == kept
