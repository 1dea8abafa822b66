import numpy as np
import pytest

import countveil as cv


def test_a_tensor_of_two_modes_is_learned_from_batches_as_topics_are():
    counts = np.random.default_rng(4).poisson(40.0, (30, 6))
    options = {
        "method": "svi",
        "passes": 2,
        "batch_rows": 7,
        "draws": 3,
        "seed": 1,
        "alpha": 0.4,
        "threads": 1,
    }
    tensor, topics = cv.TensorModel(2, **options).fit(counts), cv.TopicModel(2, **options).fit(counts)
    np.testing.assert_array_equal(tensor.rate().to_numpy(), topics.rate().to_numpy())
    assert tensor.n_iter_ == 2 * 5
    with pytest.raises(ValueError, match="passes must be a whole number of at least 1, got 0"):
        tensor.set_params(passes=0).fit(counts)
