"""What an analyst uses: models that follow scikit-learn's conventions."""

import countveil.common.late  # noqa: F401  before anything imports scikit-learn
from countveil.fit.base import load
from countveil.fit.blocks import BlockModel
from countveil.fit.dynamics import DynamicModel
from countveil.fit.einsum import PoissonFactorization
from countveil.fit.tensors import TensorModel
from countveil.fit.topics import TopicModel

__all__ = ["BlockModel", "DynamicModel", "PoissonFactorization", "TensorModel", "TopicModel", "load"]
