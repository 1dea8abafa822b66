import pytest

from countveil.engines.placing import MAX_BLOCKS_PER_GROUP, grouped, placed


@pytest.mark.parametrize("n_threads", [1, 2, 7, 64, 1000])
@pytest.mark.parametrize("n_blocks", [1, 2, 13, 40, 1000])
def test_groups_are_halves_of_halves_and_have_every_block_once(n_blocks, n_threads):
    groups = grouped(n_blocks, n_threads)
    assert [number for group in groups for number in group] == list(range(n_blocks))
    assert len(groups) & (len(groups) - 1) == 0
    sizes = [len(group) for group in groups]
    assert max(sizes) <= MAX_BLOCKS_PER_GROUP
    assert max(sizes) - min(sizes) <= 1
    assert 2 * len(groups) > n_blocks or len(groups) % n_threads == 0 or len(groups) >= 4 * n_threads


def test_groups_are_shared_out_by_threads_and_neighbours_stay_together():
    assert placed([None] * 8, {"a": 1, "b": 1}) == list("aaaabbbb")
    assert placed([None] * 16, {"a": 1, "b": 1, "c": 1}) == list("aaaaaabbbbbbcccc")
    assert sorted(placed([None] * 8, {"a": 1, "b": 3})) == list("aabbbbbb")


def test_groups_stay_where_they_are():
    held = list("babbaaba")
    assert placed(held, {"a": 1, "b": 1}) == held
    assert placed([*held[:3], None, *held[4:]], {"a": 1, "b": 1}) == held


def test_groups_of_a_lost_worker_go_to_the_others():
    assert placed(list("abbaabba"), {"b": 1}) == ["b"] * 8
    assert sorted(placed(list("abcabc"), {"a": 1, "c": 1})) == list("aaaccc")


def test_a_new_worker_gets_its_share_and_no_more():
    found = placed(["a"] * 8, {"a": 1, "b": 1})
    assert sorted(found) == list("aaaabbbb")
    assert found[:4] == ["a"] * 4
