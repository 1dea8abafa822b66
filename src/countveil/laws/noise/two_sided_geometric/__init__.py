"""Two-sided geometric noise: P(tau) proportional to alpha^|tau|; its formulas and its compiled laws."""
