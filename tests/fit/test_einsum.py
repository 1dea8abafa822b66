"""What a factorization refuses: each message names the argument, the rule and the value."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import countveil as cv

MATRIX = np.ones((4, 3), dtype=int)
SQUARE = np.ones((4, 4), dtype=int)
TENSOR = np.ones((4, 2, 2), dtype=int)
BRIEF = {"draws": 2, "tune": 1, "chains": 1, "seed": 1, "progress": False}
BLOCKS = "ic,jd,cd->ij"
SAME = {"jd": "ic"}


def refused(message, spec="dk,vk->dv", data=MATRIX, **options):
    ranks = options.pop("ranks", {a: 2 for a in "kcd" if a in spec and a not in spec.split("->")[-1]})
    with pytest.raises(ValueError, match=message):
        cv.PoissonFactorization(spec, ranks, alpha=0.5, **BRIEF, **options).fit(data)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("dk,vk->dw", r"^axis 'w' of the output appears in no factor of 'dk,vk->dw'$"),
        ("dk,vq->dv", r"^axis 'k' appears in one factor only and nowhere else in 'dk,vq->dv': a latent axis joins"),
        ("dkq,vk->dv", r"^axis 'q' appears in one factor only and nowhere else in 'dkq,vk->dv'"),
        ("dk,vk", r"^spec must be an einsum with an output, like 'dk,vk->dv', got 'dk,vk'$"),
        ("dk->vk->dv", r"^spec must be an einsum with an output, .* got 'dk->vk->dv'$"),
        ("dk,vk->", r"^spec must be letters, commas and one '->', got '' in 'dk,vk->'$"),
        ("dk,,vk->dv", r"^spec must be letters, commas and one '->', got '' in"),
        ("...k,vk->...v", r"^spec must be letters, commas and one '->', got '\.\.\.k'"),
        ("d1,v1->dv", r"^spec must be letters, commas and one '->', got 'd1'"),
        ("dkk,vk->dv", r"^spec must not repeat an axis within a factor, got 'k' twice in 'dkk'$"),
        ("dk,vk->dd", r"^spec must not repeat an axis within a factor, got 'd' twice in 'dd'$"),
        ("dk,dk,vk->dv", r"^factors must have different names, got 'dk' twice in 'dk,dk,vk->dv'; give names=$"),
    ],
)
def test_specs_that_make_no_sense(spec, message):
    refused(message, spec, ranks={"k": 2})


def test_specs_that_are_no_text():
    with pytest.raises(ValueError, match=r"^spec must be an einsum with an output, .* got None$"):
        cv.PoissonFactorization(None, {"k": 2}, alpha=0.5, **BRIEF).fit(MATRIX)


@pytest.mark.parametrize(
    ("spec", "data", "message"),
    [
        (
            "dk,vk,tk->dvt",
            MATRIX,
            r"^data must have one axis for each of \['d', 'v', 't'\], got 2 .* \(4, 3\): cv.TensorModel ",
        ),
        ("dk,vk->dv", TENSOR, r"^data must have one axis for each of \['d', 'v'\], got 3 .*: cv.TensorModel "),
        (BLOCKS, TENSOR, r"^data must have one axis for each of \['i', 'j'\], got 3"),
    ],
)
def test_output_axes_without_data_and_data_without_axes(spec, data, message):
    refused(message, spec, data)
    with pytest.raises(ValueError, match=r"^data must have one axis for each of \['i', 'j'\], got 3"):
        cv.BlockModel(2, alpha=0.5, **BRIEF).fit(TENSOR)


@pytest.mark.parametrize(
    ("ranks", "message"),
    [
        (None, r"^ranks must give a size for the latent axis 'k', got \{\}$"),
        ({}, r"^ranks must give a size for the latent axis 'k', got \{\}$"),
        ({"k": 2, "z": 3}, r"^ranks must be for latent axes \['k'\], got 'z'$"),
        ({"k": 2, "d": 3}, r"^ranks must be for latent axes \['k'\], got 'd'$"),
        *[
            ({"k": bad}, f"^ranks must be whole numbers of at least 1, got {re.escape(repr(bad))} for 'k'$")
            for bad in (0, -1, 2.5, float("nan"), float("inf"), "2", "two", None, True)
        ],
        (2, r"^ranks must be a mapping, such as a dict, got 2$"),
        ([2], r"^ranks must be a mapping, such as a dict, got \[2\]$"),
    ],
)
def test_ranks_that_are_missing_unknown_or_no_sizes(ranks, message):
    refused(message, ranks=ranks)


def test_ranks_may_be_numpy_numbers():
    fit = cv.PoissonFactorization("dk,vk->dv", {"k": np.int64(3)}, alpha=0.5, **BRIEF).fit(MATRIX)
    assert fit.posterior["posterior"].sizes["k"] == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"data": MATRIX}, r"^factor 'ic' is shared by axes 'i' and 'j', .* the same size, got 4 and 3$"),
        ({"ranks": {"c": 2, "d": 3}}, r"^factor 'ic' is shared by axes 'c' and 'd', .* same size, got 2 and 3$"),
        ({"shared": {"zz": "ic"}}, r"^shared must name factors among \['ic', 'jd', 'cd'\], got 'zz'$"),
        ({"shared": {"jd": "zz"}}, r"^shared must name factors among \['ic', 'jd', 'cd'\], got 'zz'$"),
        ({"shared": {"jd": "jd"}}, r"^shared must map a factor to an earlier one of its own, got 'jd': 'jd'$"),
        ({"shared": {"ic": "jd"}}, r"^shared must map a factor to an earlier one of its own, got 'ic': 'jd'$"),
        ({"shared": {"cd": "ic"}}, r"^shared factors must have one observed .* got 'ic' and 'cd'$"),
        ({"shared": "jd"}, r"^shared must be a mapping, such as a dict, got 'jd'$"),
        (
            {"spec": "ic,jc,kc->ijk", "data": TENSOR, "ranks": {"c": 2}, "shared": {"jc": "ic", "kc": "ic"}},
            r"^shared must name one factor that is used twice, got 2 entries$",
        ),
        (
            {"spec": "ic,jc,id,jd->ij", "shared": {"jc": "ic"}},
            r"^the observed axis 'i' of a shared factor must be in no other factor$",
        ),
        (
            {"spec": "ak,ic,jc,ck->aij", "data": TENSOR, "shared": {"jc": "ic"}},
            r"^a shared factor must hold the first output axis, got 'i' and 'j' with output 'aij'$",
        ),
        (
            {"spec": "jc,ic->ij", "shared": {"ic": "jc"}},
            r"^the first use of a shared factor must hold the first output axis 'i'$",
        ),
        ({"symmetric": "cd"}, r"^symmetric must be a sequence of names of factors, got 'cd'$"),
        ({"symmetric": ("zz",)}, r"^symmetric must name factors among \['ic', 'cd'\], got 'zz'$"),
        ({"symmetric": ("ic",)}, r"^symmetric factors must have two latent axes, got 'ic' with axes 'ic'$"),
        ({"self_loops": "no"}, r"^self_loops must be True or False, got 'no'$"),
    ],
)
def test_shared_and_symmetric_factors_that_do_not_fit(options, message):
    refused(message, **{"spec": BLOCKS, "data": SQUARE, "shared": SAME} | options)


@pytest.mark.parametrize(
    "options",
    [
        {"fixed": {"cd": [[1.0, 2.0], [3.0, 1.0]]}},
        {"priors": {"cd": ([[1.0, 2.0], [3.0, 1.0]], 1.0)}},
        {"priors": {"cd": (1.0, [[1.0, 2.0], [3.0, 1.0]])}},
    ],
)
def test_what_is_told_of_a_symmetric_factor_equals_its_transpose(options):
    message = r"symmetric factor 'cd' must equal its transpose, got 2.0 at \(0, 1\) and 3.0 at \(1, 0\)$"
    refused(message, BLOCKS, SQUARE, shared=SAME, symmetric=("cd",), **options)


@pytest.mark.parametrize(
    "modes",
    [["a", word] for word in ("chain", "component", "release", "iteration", "factor_a", "factor_a_rate")]
    + [["factor_b_rate", "b"]],
)
def test_modes_that_the_posterior_calls_something_else(modes):
    with pytest.raises(
        ValueError, match=r"^modes must differ from the names of the posterior's own arrays, got \['\w+'\]: choose"
    ):
        cv.TensorModel(2, modes=modes, alpha=0.5, **BRIEF).fit(MATRIX)


@pytest.mark.parametrize("name", ["p", "p_mean", "alpha", "exposure", "objective"])
def test_axes_called_like_arrays_of_this_fit_are_refused_before_it(name):
    data, bursty = (cv.PrivatizedCounts(MATRIX, 0.5), BRIEF | {"likelihood": "negative-binomial", "dispersion": "row"})
    for model in (
        cv.TensorModel(2, modes=["a", name], **bursty),
        cv.DynamicModel(2, modes=["time", name], **bursty),
        cv.PoissonFactorization("ik,jk->ij", {"k": 2}, dims={"j": name}, **bursty),
    ):
        with pytest.raises(ValueError, match=rf"^modes \(dims\) must differ .*, got \['{name}'\]: choose "):
            model.fit(data)


def test_a_symmetric_factor_is_square():
    message = r"^symmetric factor 'cd' must be square, got 2 by 3$"
    refused(message, BLOCKS, SQUARE, ranks={"c": 2, "d": 3}, symmetric=("cd",))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"priors": {"zz": (1, 1)}}, r"^priors must be for factors among \['dk', 'vk'\], got 'zz'$"),
        ({"priors": {"dk": 1}}, r"^priors must be pairs \(shape, rate\), got 1 for 'dk'$"),
        ({"priors": {"dk": (-1, 1)}}, r"^prior of 'dk' must be positive and finite, got -1.0$"),
        ({"priors": {"dk": (1, 0)}}, r"^prior of 'dk' must be positive and finite, got 0.0$"),
        ({"priors": {"dk": ("a", 1)}}, r"^prior of 'dk' must be a number or an array of them, got 'a'$"),
        ({"priors": {"dk": (np.ones((3, 2)), 1)}}, r"^prior of 'dk' must broadcast against \(4, 2\), got shape"),
        ({"priors": 1}, r"^priors must be a mapping, such as a dict, got 1$"),
        ({"fixed": {"zz": 1}}, r"^fixed must be for factors among \['dk', 'vk'\], got 'zz'$"),
        ({"fixed": {"vk": np.ones((2, 3))}}, r"^fixed factor 'vk' must have shape \(3, 2\), got \(2, 3\)$"),
        ({"fixed": {"vk": [[1, 1], [1, -3], [1, 1]]}}, r"finite and not negative, got -3.0 at index \(1, 1\)$"),
        ({"fixed": {"vk": np.full((3, 2), np.nan)}}, r"finite and not negative, got nan at index \(0, 0\)$"),
        ({"fixed": {"vk": np.zeros((3, 2))}}, r"^fixed factor 'vk' must have a positive entry, got only zeros"),
        (
            {"fixed": {"vk": np.ones((3, 2))}, "priors": {"vk": (1, 1)}},
            r"^fixed must be for factors without a prior in priors, got 'vk'$",
        ),
        ({"fixed": {"vk": "a"}}, r"^fixed factor 'vk' must be a number or an array of them, got 'a'$"),
        ({"fixed": {"vk": np.ones((3, 2)), "dk": np.ones((4, 2))}}, r"^fixed must leave a factor to be found"),
        ({"dims": {"z": "doc"}}, r"^dims must be for axes of the spec \['d', 'k', 'v'\], got 'z'$"),
        ({"dims": {"d": "x", "v": "x"}}, r"^dims must be different words, .* got 'x' among"),
        ({"dims": {"k": "draw"}}, r"^dims must be different words, none of 'chain', 'draw', .* got 'draw' among"),
        ({"dims": {"d": "release"}}, r"^dims must be different words, none of .* got 'release' among"),
        (
            {"dims": {"d": "dk_rate"}},
            r"a prior's rate or shape \(dk_rate, dk_shape, vk_rate, vk_shape\), got 'dk_rate' among",
        ),
        ({"dims": {"k": 3}}, r"^dims must be different words, .* got 3 among"),
        ({"names": ["a"]}, r"^names must name each of the 2 factors in 'dk,vk->dv', got 1$"),
        ({"names": ["a", "a"]}, r"^factors must have different names, got 'a' twice"),
        ({"names": [1, 2]}, r"^names must be words, got 1$"),
        ({"names": ["chain", "a"]}, r"^names of factors must differ from .* got 'chain'"),
        ({"names": ["a", "v"]}, r"^names of factors must differ from those of axes \(d, v, k\), .* got 'v'"),
        ({"names": ["a", "a_rate"]}, r"^names of factors must differ from .* got 'a_rate'"),
        ({"spec": "d,v->dv"}, r"^names of factors must differ from .* got 'd'; give names= or dims=$"),
    ],
)
def test_priors_fixed_factors_and_names_that_do_not_fit(options, message):
    refused(message, **options)


WORDS = ["aid", "talk", "war"]
NAMED = pd.DataFrame(MATRIX, columns=WORDS)
TOPICS = pd.DataFrame([[1.0, 2.0], [3.0, 1.0], [1.0, 1.0]], index=WORDS)
TOLD = {
    "fixed": lambda change: {"fixed": {"vk": change(TOPICS)}},
    "shape": lambda change: {"priors": {"vk": (change(TOPICS), 1.0)}},
    "rate": lambda change: {"priors": {"vk": (1.0, change(TOPICS))}},
    "by column": lambda change: {"priors": {"kv": (1.0, change(TOPICS).T)}, "spec": "dk,kv->dv"},
    "Series": lambda change: {"priors": {"kv": (change(TOPICS[0]), 1.0)}, "spec": "dk,kv->dv"},
}


@pytest.mark.parametrize("told", TOLD.values(), ids=TOLD)
def test_what_is_told_of_a_factor_has_the_labels_of_the_data(told):
    def fit(change, data=NAMED):
        options = {"spec": "dk,vk->dv", **told(change)}
        return cv.PoissonFactorization(ranks={"k": 2}, **options, **BRIEF).fit(cv.ExactCounts(data))

    named, plain = (fit(change).rate().to_numpy() for change in (lambda f: f, lambda f: f.set_axis(range(3))))
    np.testing.assert_array_equal(named, plain)
    np.testing.assert_array_equal(fit(lambda f: f, NAMED.to_numpy()).rate().to_numpy(), plain)
    with pytest.raises(
        ValueError, match="must have the v labels of reports in their order, got 'war' for 'aid' at v 0"
    ):
        fit(lambda f: f[::-1])


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ([[0, 5], [0, 1]], r"^coordinates along axis 0 must be from 0 to 3, got 5 in entry 1$"),
        ([[0, -1], [0, 1]], r"^coordinates along axis 0 must be from 0 to 3, got -1 in entry 1$"),
        ([[0, 0], [1, 3]], r"^coordinates along axis 1 must be from 0 to 2, got 3 in entry 1$"),
        ([[2, 2], [1, 1]], r"^coordinates must name each cell once, got cell \(2, 1\) again in entry 1; "),
    ],
)
def test_coordinates_out_of_range_and_repeated(where, message):
    with pytest.raises(ValueError, match=message):
        cv.ExactCounts.from_coordinates(where, [1, 2], shape=(4, 3))
    with pytest.raises(ValueError, match=message):
        cv.PrivatizedCounts.from_coordinates(where, [1, 2], 0.5, shape=(4, 3))
    with pytest.raises(ValueError, match=message):
        cv.NaiveCounts.from_coordinates(where, [1, 2], shape=(4, 3))


def twice(form, n_axes=2):
    """One cell named twice, for reports of 1 and 2."""
    if form == "coo":
        return sp.coo_array(([1, 2], ([2, 2], [1, 1], [0, 0])[:n_axes]), shape=(4, 3, 2)[:n_axes])
    parts = (np.array([1, 2]), np.array([1, 1]), np.array([0, 0, 0, 2, 2]))
    return sp.csr_array(parts, shape=(4, 3)) if form == "csr" else sp.csc_array(parts, shape=(3, 4))


@pytest.mark.parametrize(("form", "n_axes"), [("coo", 2), ("coo", 3), ("csr", 2), ("csc", 2)])
def test_a_sparse_matrix_that_repeats_a_cell_is_the_sum_of_counts_only(form, n_axes):
    assert cv.ExactCounts(twice(form, n_axes)).reports.tolist() == [3]
    assert cv.ExactCounts.from_coordinates([[2, 2], [1, 1]], [1, 2], sum_duplicates=True).reports.tolist() == [3]
    message = r"^reports must name each cell once, got a duplicate: a sum of reports carries the noise of each"
    with pytest.raises(ValueError, match=message):
        cv.PrivatizedCounts(twice(form, n_axes), 0.5)
    with pytest.raises(ValueError, match=message):
        cv.NaiveCounts(twice(form, n_axes))
    if n_axes == 2:
        with pytest.raises(ValueError, match=message):
            cv.TopicModel(2, alpha=0.5, **BRIEF).fit(twice(form))
