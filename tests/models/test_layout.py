"""Names of components, and axes along which they can be listed."""

import pytest

from countveil.models.einsum import axis_sizes, parse_spec
from countveil.models.factorization import factorization, typical_priors
from countveil.models.layout import default_part, listable


def model(text, **options):
    spec = parse_spec(text, **options)
    sizes = axis_sizes(spec, [3] * len(spec.output), dict.fromkeys(spec.latent, 2))
    return factorization(spec, sizes, typical_priors(spec, sizes, 1.0, None, 1.0))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dk,vk->dv", {"d": "dk", "v": "vk"}),
        ("dk,kv->dv", {"d": "dk", "v": "kv"}),
        ("ik,jk,tk->ijt", {"i": "ik", "j": "jk", "t": "tk"}),
        ("ic,jd,ak,tr,cdkr->ijat", {"i": "ic", "j": "jd", "a": "ak", "t": "tr"}),
        ("dk,kc,vc->dv", {"d": "dk", "v": "vc"}),
        ("dyk,vk->dvy", {"v": "vk"}),
        ("dkt,vk,yt->dvy", {"v": "vk", "y": "yt"}),
        ("dk,vk,dt,yt->dvy", {"v": "vk", "y": "yt"}),
        ("d,dk,vk->dv", {"v": "vk"}),
        ("dkt,vkt->dv", {}),
    ],
)
def test_axes_that_one_factor_joins_with_one_latent_axis_can_be_listed(text, expected):
    assert {axis: factor.axes for axis, factor in listable(model(text)).items()} == expected


def test_of_a_factor_that_is_used_twice_the_first_use_is_listed():
    found = listable(model("ic,jd,cd->ij", shared={"jd": "ic"}))
    assert {axis: factor.axes for axis, factor in found.items()} == {"i": "ic"}


def test_words_for_components():
    for one, many in (("topic", "topics"), ("community", "communities"), ("day", "days"), ("y", "ys")):
        part = default_part(one)
        assert (part.one, part.many) == (one, many)
        assert (part.whole, part.measure) == ("all expected counts", f"share of the {one}")
        assert part.axes == ()
