"""Privatizer: exact noise as one step of a scikit-learn pipeline."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from countveil.privacy import PrivacyLevel, Release, privatize
from countveil.privacy.exact import Exact


class Privatizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Adds exact two-sided geometric noise to every count on its way through a pipeline.

    ``CountVectorizer -> Privatizer -> TopicModel``: what comes out is a ``Release``, made by ``privatize`` from the
    operating system's entropy. It cannot be seeded, and has no ``random_state``.

    **Every call of ``transform`` or ``fit_transform`` is another release of whatever rows it is given, and spends
    epsilon again.** ``pipeline.fit(X)`` is one release of X, ``pipeline.transform(X)`` after it is a second one with
    fresh noise, and cross-validation releases each row once per fold: see ``PrivacyLevel.repeated`` for what is left
    of the promise then. To spend once, call ``privatize`` once and hand its release to everything that follows.

    Labels are published as they are. Those of a DataFrame are kept; a sparse matrix from a CountVectorizer has none,
    so give its words as ``column_labels``, and fix them beforehand (``CountVectorizer(vocabulary=words)``): a
    vocabulary learned from the documents reveals which words are in them.

    Args:
        epsilon, precision: the promise, as for ``PrivacyLevel``; one for all rows.
        truncate: as for ``privatize``: True for max(0, report), False for signed reports, None for truncated if the
            counts are sparse.
        column_labels: names of the columns, in place of those of a DataFrame.

    Attributes:
        level_: the PrivacyLevel.
        n_features_in_: columns of the data.
        feature_names_in_: only for data whose columns have names.
    """

    def __init__(
        self,
        epsilon: Exact,
        precision: Exact,
        *,
        truncate: bool | None = None,
        column_labels: Sequence[str] | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.precision = precision
        self.truncate = truncate
        self.column_labels = column_labels

    def fit(self, X: Any, y: None = None) -> Self:
        """Check the parameters and note the columns of X; releases nothing, and looks at no count.

        Raises:
            TypeError: a level that is not a number.
            ValueError: a level that is not positive and finite, X without rows and columns, labels for another
                number of columns.
        """
        self.level_ = PrivacyLevel(self.epsilon, self.precision)
        refuse_vectors(X)
        validate_data(self, X, reset=True, skip_check_array=True)
        if self.column_labels is not None and len(self.column_labels) != self.n_features_in_:
            raise ValueError(
                f"column_labels must have one entry for each of the {self.n_features_in_} columns, "
                f"got {len(self.column_labels)}"
            )
        return self

    def transform(self, X: Any) -> Release:
        """A new release of X: fresh noise on every count, zeros included. Two calls spend twice.

        Raises:
            NotFittedError: before ``fit``.
            TypeError, ValueError: as ``privatize``; no message shows a count. Columns other than the fit's.
        """
        check_is_fitted(self)
        refuse_vectors(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return privatize(X, self.level_, self.truncate, column_labels=self.column_labels)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns, which are those of the input."""
        check_is_fitted(self)
        if self.column_labels is not None:
            return np.array([str(label) for label in self.column_labels], dtype=object)
        return super().get_feature_names_out(input_features)

    def set_output(self, *, transform: Any = None) -> Self:
        """Changes nothing: a release keeps its form, even in a pipeline whose other steps output tables."""
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.non_deterministic = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def refuse_vectors(X: Any) -> None:
    """Refuses a vector, which could be one record or one count from each of many."""
    shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    if len(shape) < 2:
        raise ValueError(
            f"X must have rows and columns, got shape {tuple(shape)}. Reshape your data: one record is a matrix "
            "with one row"
        )
