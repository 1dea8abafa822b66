"""The posts that the second tutorial is about."""

from importlib.resources import files

from countveil.experiments.posts import load_posts


def test_posts_come_with_the_leaning_of_their_blogs():
    counts, covariates = load_posts()
    assert counts.shape == (800, 300)
    assert counts.index.equals(covariates.index)
    assert counts.to_numpy().sum() == 77_960
    assert counts.to_numpy().min() == 0
    assert counts.columns.is_unique
    assert covariates["leaning"].value_counts().to_dict() == {"conservative": 434, "liberal": 366}
    assert covariates["day"].between(1, 366).all()


def test_the_licence_of_the_posts_is_beside_them():
    text = (files("countveil.experiments") / "posts.LICENSE.txt").read_text(encoding="utf-8")
    assert "MIT License" in text
    assert "posts.npz" in text
