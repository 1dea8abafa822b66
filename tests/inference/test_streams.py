import itertools

import numpy as np
import pytest

from countveil.inference.streams import COLUMNS, HYPERS, PARAMETERS, ROWS, SPLITS, START, Streams

PINNED = {  # (seed, chain, sweep, purpose, block): the first two words of Philox, the same on any machine
    (0, 0, 0, START, 0): (10623555177248261865, 7078260903520873204),
    (1, 0, 1, ROWS, 0): (10059578166074347355, 11861823389190045285),
    (1, 1, 1, ROWS, 0): (12106872744150962949, 11302915397421509980),
    (1, 0, 2, COLUMNS, 1): (2079092491346692318, 15083144211618617564),
    (1, 0, 2, COLUMNS, 3 << 32 | 1): (12323767756832249967, 17839291245598087480),
    (1, 0, 2, SPLITS, 0): (9517912279628634843, 15304582104306402468),
    (2**63 - 1, 3, 500, HYPERS, 0): (9701700868336852565, 734971019752815606),
}


def words(generator, n=2):
    return tuple(int(word) for word in generator.bit_generator.random_raw(n))


def test_streams_of_other_arguments_never_meet():
    purposes, blocks = (ROWS, COLUMNS, HYPERS, START, SPLITS, PARAMETERS), (0, 1, 500, 3 << 32 | 1)
    arguments = list(itertools.product((0, 1, 7), (0, 1, 2), (0, 1, 1000), purposes, blocks))
    places, firsts = set(), set()
    for seed, chain, sweep, purpose, block in arguments:
        generator = Streams.of_chain(seed, chain).generator(sweep, purpose, block)
        state = generator.bit_generator.state["state"]
        assert state["counter"][:2].tolist() == [0, 0]  # the words that count within a stream
        places.add((*state["key"].tolist(), *state["counter"].tolist()))
        firsts.add(words(generator))
    assert len(places) == len(firsts) == len(arguments)


def test_a_long_stream_does_not_run_into_its_neighbours():
    generator = Streams.of_chain(1, 0).generator(3, ROWS, 2)
    before = generator.bit_generator.state["state"]["counter"][2:].copy()
    generator.bit_generator.advance(2**100)
    np.testing.assert_array_equal(generator.bit_generator.state["state"]["counter"][2:], before)


def test_the_same_arguments_give_the_same_stream():
    assert words(Streams.of_chain(5, 2).generator(9, COLUMNS, 3), 50) == words(
        Streams.of_chain(5, 2).generator(9, COLUMNS, 3), 50
    )


@pytest.mark.parametrize(("arguments", "expected"), PINNED.items())
def test_the_mapping_from_seed_to_chain_is_what_it_was(arguments, expected):
    seed, chain, sweep, purpose, block = arguments
    assert words(Streams.of_chain(seed, chain).generator(sweep, purpose, block)) == expected


def test_seeds_of_any_size_are_told_apart():
    seeds = [0, 1, 2**32, 2**32 + 1, 2**63 - 1, 2**64, 2**200]
    assert len({Streams.of_chain(seed, 0) for seed in seeds}) == len(seeds)
