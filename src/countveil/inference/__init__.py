"""One algorithm per file, each an ``init`` and a ``step``; where chains begin; the one loop that runs them."""
