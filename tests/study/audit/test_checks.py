"""The audit passes what is right and fails what is planted; planted noise is seeded, so nothing here is chance."""

import functools
import hashlib
import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from countveil.privacy import PrivacyLevel, report
from countveil.study.audit import Route, audit_layout, audit_route, shipped_routes
from countveil.study.audit import checks as module

pytestmark = pytest.mark.long

LEVEL, STRONG = PrivacyLevel(1, 1), PrivacyLevel(1, 10)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "PAIR_DRAWS", 100_000)
    monkeypatch.setattr(module, "MIN_DRAWS", 100_000)


class Planted:
    """Noise like the shipped one, but seeded, and with a fault."""

    def __init__(self, fault="none"):
        self.rng = np.random.default_rng(8)
        self.fault = fault

    def draw(self, rate, size):
        if self.fault == "alpha 2% too large":
            rate = -np.log(np.exp(-rate) * 1.02) if rate > 0.05 else rate
        elif self.fault == "alpha 2% too small":
            rate = -np.log(np.exp(-rate) * 0.98)
        rng = np.random.default_rng(8) if self.fault == "one seed" else self.rng
        return rng.geometric(-np.expm1(-rate), size) - rng.geometric(-np.expm1(-rate), size)

    def __call__(self, counts, level):
        noise = self.draw(float(level.rate), counts.size)
        if self.fault == "one side":
            noise = np.abs(noise)
        elif self.fault == "one noise for all rows":
            noise = np.resize(noise[:1000], counts.size)
        elif self.fault == "every draw twice":
            noise = np.repeat(noise[: (counts.size + 1) // 2], 2)[: counts.size]
        elif self.fault == "mirrored":
            half = (counts.size + 1) // 2
            noise = np.concatenate([noise[:half], -noise[:half]])[: counts.size]
        elif self.fault == "zeros kept":
            noise = np.where(counts == 0, 0, noise)
        elif self.fault == "floats":
            return (counts.astype(float) + noise).astype(np.int64)
        return counts + noise


@functools.cache
def failed(fault, level=LEVEL):
    return {found.check for found in audit_route(Route("planted", Planted(fault)), [level]) if not found.passed}


@pytest.mark.parametrize("level", [LEVEL, STRONG, PrivacyLevel(1, 10**6), PrivacyLevel(30, 1)])
def test_right_noise_passes(level):
    assert failed("none", level) == set()


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("alpha 2% too large", "alpha"),
        ("alpha 2% too small", "alpha"),
        ("alpha 2% too small", "law"),
        ("floats", "law at 2^60"),
        ("floats", "law at 2^53"),
        ("floats", "epsilon, 2^60 + 128 and 2^60 + 129"),
        ("zeros kept", "law at zeros"),
        ("zeros kept", "epsilon, 0 and 1"),
        ("one seed", "reuse of noise"),
        ("one noise for all rows", "reuse of noise"),
        ("every draw twice", "independence"),
        ("mirrored", "reuse of noise"),
        ("one side", "both signs"),
        ("one side", "epsilon, 0 and 1"),
    ],
)
def test_planted_faults_fail(fault, check):
    assert check in failed(fault)


@pytest.mark.parametrize("fault", ["alpha 2% too large", "alpha 2% too small"])
@pytest.mark.parametrize("level", [STRONG, PrivacyLevel(3, 1)])
def test_a_wrong_alpha_fails_at_other_levels(fault, level):
    assert "alpha" in failed(fault, level)


def test_a_fault_on_a_participants_device_fails(monkeypatch):
    """The five, planted where participants' noise is drawn."""
    participant = shipped_routes()[2]
    monkeypatch.setattr(module, "PAIR_DRAWS", 20_000)
    for fault in ("alpha 2% too small", "one side", "one seed"):
        planted = Planted(fault)

        def draw(rate, size, planted=planted):
            noise = planted.draw(float(rate), size)
            return (np.abs(noise) if planted.fault == "one side" else noise).tolist()

        monkeypatch.setattr("countveil.privacy.noise.draw", draw)
        assert not all(found.passed for found in audit_route(participant, [LEVEL]))


# --- levels of rho ---

EIGHTH = PrivacyLevel.zcdp("0.125")


class PlantedGaussian(Planted):
    """Discrete Gaussian noise, seeded, and with a fault."""

    def noise(self, variance, size):
        sigma = math.sqrt(variance) * {"sigma 2% too large": 1.02, "sigma 2% too small": 0.98}.get(self.fault, 1)
        values = np.arange(-int(12 * sigma) - 2, int(12 * sigma) + 3)
        weights = np.exp(-0.5 * (values / sigma) ** 2)
        if self.fault == "zero counted twice":
            weights[values == 0] *= 2
        rng = np.random.default_rng(8) if self.fault == "one seed" else self.rng
        if self.fault == "rounded normal":
            return np.rint(rng.normal(0, sigma, size)).astype(np.int64)
        if self.fault == "geometric":
            weights = np.exp(-np.abs(values) * math.sqrt(2) / sigma)
        if self.fault == "a tail that ends":
            weights[np.abs(values) > 3 * sigma] = 0
        return rng.choice(values, size, p=weights / weights.sum())

    def draw(self, rate, size):
        return self.noise(1 / (2 * rate), size)

    def __call__(self, counts, level):
        return super().__call__(counts, Fake(level.loss))


class Fake(NamedTuple):
    rate: Fraction


@functools.cache
def failed_gaussian(fault, level=EIGHTH):
    route = Route("planted", PlantedGaussian(fault))
    return {found.check for found in audit_route(route, [level]) if not found.passed}


@pytest.mark.parametrize("level", [EIGHTH, PrivacyLevel.zcdp("0.0002"), PrivacyLevel.zcdp(6)])
def test_right_gaussian_noise_passes(level):
    assert failed_gaussian("none", level) == set()


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("sigma 2% too large", "sigma"),
        ("sigma 2% too small", "sigma"),
        ("sigma 2% too small", "law"),
        ("zero counted twice", "law"),
        ("geometric", "law"),
        ("a tail that ends", "law"),
        ("floats", "law at 2^60"),
        ("floats", "rho, 2^60 + 128 and 2^60 + 129"),
        ("zeros kept", "law at zeros"),
        ("zeros kept", "rho, 0 and 1"),
        ("one seed", "reuse of noise"),
        ("mirrored", "reuse of noise"),
        ("one side", "both signs"),
        ("one side", "rho, 0 and 1"),
    ],
)
def test_planted_faults_of_gaussian_noise_fail(fault, check):
    assert check in failed_gaussian(fault)


def test_rounded_normal_noise_is_not_discrete_gaussian():
    assert "law" in failed_gaussian("rounded normal", PrivacyLevel.zcdp(1))


def test_a_fault_of_gaussian_noise_on_a_participants_device_fails(monkeypatch):
    planted = PlantedGaussian("zero counted twice")
    monkeypatch.setattr(module, "PAIR_DRAWS", 20_000)
    monkeypatch.setattr(
        "countveil.privacy.gaussian_noise.draw", lambda variance, size: planted.noise(variance, size).tolist()
    )
    assert not all(found.passed for found in audit_route(shipped_routes()[2], [EIGHTH]))


def test_reports_that_are_cut_are_not_audited_at_a_rho():
    assert list(audit_route(shipped_routes()[1], [EIGHTH])) == []


@pytest.mark.parametrize("place", [0, 2])
def test_the_shipped_routes_pass_at_a_rho(place, monkeypatch):
    """False alarms: fewer than one in 10^6 runs."""
    monkeypatch.setattr(module, "DETECTED", 0.05)
    found = list(audit_route(shipped_routes()[place], [EIGHTH]))
    assert [each for each in found if not each.passed] == []
    assert {"sigma", "law", "rho, 0 and 1"} <= {each.check for each in found}


@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_shipped_routes_pass(place, monkeypatch):
    """False alarms: fewer than one in 10^6 runs."""
    monkeypatch.setattr(module, "DETECTED", 0.05)
    found = list(audit_route(shipped_routes()[place], [LEVEL]))
    assert [each for each in found if not each.passed] == []
    assert len(found) >= 11
    assert all(each.power for each in found)


def test_a_layout_that_tells_more_fails():
    def padded(made, asked):
        content = report.encode(made, asked)
        return content + b" " * (len(content) % 3)

    def spaced(made, asked):
        return report.encode(made, asked).replace(b'":', b'": ')

    def sealed_again(made, asked):
        body = spaced(made, asked).partition(b',"sha256"')[0]
        return body + report._SEAL % hashlib.sha256(body).hexdigest().encode()

    assert [found.passed for found in audit_layout(report.encode)] == [True]
    for encode in (padded, spaced, sealed_again):
        assert [found.passed for found in audit_layout(encode)] == [False]
