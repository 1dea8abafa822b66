"""What an analyst uses: models that follow scikit-learn's conventions."""

from countveil.fit.base import load
from countveil.fit.blocks import BlockModel
from countveil.fit.dynamics import DynamicModel
from countveil.fit.einsum import PoissonFactorization
from countveil.fit.tensors import TensorModel
from countveil.fit.topics import TopicModel

__all__ = ["BlockModel", "DynamicModel", "PoissonFactorization", "TensorModel", "TopicModel", "load"]
