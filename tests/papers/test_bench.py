import numpy as np
import pytest
import scipy.sparse as sp

from papers.bench import Bench, Task, digest


class Counter:
    def __init__(self, fails_at=None):
        self.calls, self.fails_at = 0, fails_at

    def task(self, n):
        def work():
            if n == self.fails_at:
                raise KeyboardInterrupt
            self.calls += 1
            return {"value": n * 10, "array": np.arange(n)}

        return Task({"n": n}, work)


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    first = Counter(fails_at=2)
    with pytest.raises(KeyboardInterrupt):
        Bench("case", tmp_path).results([first.task(n) for n in range(4)])
    assert first.calls == 2
    second = Counter()
    found = Bench("case", tmp_path).results([second.task(n) for n in range(4)])
    assert second.calls == 2
    assert [int(each["value"]) for each in found] == [0, 10, 20, 30]
    np.testing.assert_array_equal(found[1]["array"], [0])


@pytest.mark.parametrize("change", [{"name": "other"}, {"seed": 2}])
def test_results_of_other_settings_are_not_taken(tmp_path, change):
    counter = Counter()
    Bench("case", tmp_path).results([counter.task(1)])
    Bench(**({"name": "case", "folder": tmp_path} | change)).results([counter.task(1)])
    Bench("case", tmp_path).results([counter.task(3)])
    assert counter.calls == 3


def test_a_result_under_a_wrong_name_is_not_taken(tmp_path):
    counter, bench = Counter(), Bench("case", tmp_path)
    bench.results([counter.task(1)])
    (first,) = tmp_path.iterdir()
    bench.results([counter.task(2)])
    (second,) = set(tmp_path.iterdir()) - {first}
    second.write_bytes(first.read_bytes())
    assert int(bench.results([counter.task(2)])[0]["value"]) == 20


def test_a_damaged_result_is_worked_out_again(tmp_path):
    counter = Counter()
    Bench("case", tmp_path).results([counter.task(1)])
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:50])
    assert int(Bench("case", tmp_path).results([counter.task(1)])[0]["value"]) == 10
    assert counter.calls == 2


def test_without_a_folder_nothing_is_kept(tmp_path):
    counter = Counter()
    for _ in range(2):
        Bench("case").results([counter.task(1)])
    assert counter.calls == 2


def test_a_digest_tells_counts_apart():
    one = np.array([[1, 0], [2, 3]])
    other = np.array([[1, 0], [2, 4]])
    assert digest(one) == digest(one.copy()) != digest(other)
    assert digest(sp.csr_array(one)) != digest(sp.csr_array(other))
    assert digest(one) != digest(one.reshape(1, 4))
