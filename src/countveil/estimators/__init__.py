"""What an analyst uses: models that follow scikit-learn's conventions."""

from countveil.estimators.blocks import BlockModel
from countveil.estimators.dynamics import DynamicModel
from countveil.estimators.einsum import PoissonFactorization
from countveil.estimators.tensors import TensorModel
from countveil.estimators.topics import TopicModel

__all__ = ["BlockModel", "DynamicModel", "PoissonFactorization", "TensorModel", "TopicModel"]
