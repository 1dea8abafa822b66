"""Groups of actors annealed: one actor at a time goes to a group drawn by how well blocks between groups explain cells.

Blocks explain half the sum over groups c and d of A_cd^2 / Q_cd (mathematics, equation 10.5), where A adds up the cells
and Q the products of two actors' squares. A negative A_cd explains nothing, since rates are not negative.
"""

import math

import numpy as np

from countveil.kernels.compiled import kernel, subroutine

LEAST = 1e-9  # of Q; less is what rounding leaves where there are no cells


@kernel
def anneal(sent_ij, received_ij, square_i, group_i, n_groups, temperature_t, uniform_ti):
    """Draw every actor's group anew at each temperature, in place; returns what the blocks explain in the end.

    received_ij is the transpose of sent_ij, so that both are read by row. Diagonals are left out. square_i has mean 1.
    """
    sums = np.zeros((n_groups, n_groups)), np.zeros((n_groups, n_groups)), np.zeros((n_groups, n_groups))
    a_cd, q_cd, explained_cd = sums
    out_c, in_c, both_c = np.empty(n_groups), np.empty(n_groups), np.empty(n_groups)
    square_c, gain_c = np.zeros(n_groups), np.empty(n_groups)
    for i in range(group_i.size):
        add_up(sent_ij, received_ij, i, group_i, out_c, in_c)
        for c in range(n_groups):
            a_cd[group_i[i], c] += out_c[c]
        square_c[group_i[i]] += square_i[i]
    fill_squares(square_i, group_i, square_c, q_cd)
    for c in range(n_groups):
        for d in range(n_groups):
            explained_cd[c, d] = explained(a_cd[c, d], q_cd[c, d])
    for t in range(temperature_t.size):
        for i in range(group_i.size):
            add_up(sent_ij, received_ij, i, group_i, out_c, in_c)
            square_c[group_i[i]] -= square_i[i]
            for c in range(n_groups):
                both_c[c] = square_i[i] * square_c[c]
            change(sums, group_i[i], out_c, in_c, both_c, -1.0)
            for c in range(n_groups):
                gain_c[c] = gain(sums, c, out_c, in_c, both_c)
            group_i[i] = drawn(gain_c, temperature_t[t], uniform_ti[t, i])
            change(sums, group_i[i], out_c, in_c, both_c, 1.0)
            square_c[group_i[i]] += square_i[i]
    return explained_cd.sum()


@subroutine
def add_up(sent_ij, received_ij, i, group_i, out_c, in_c):
    """Cells from actor i, and to it, by the group of the other."""
    for c in range(out_c.size):
        out_c[c] = 0.0
        in_c[c] = 0.0
    for j in range(group_i.size):
        if j != i:
            out_c[group_i[j]] += sent_ij[i, j]
            in_c[group_i[j]] += received_ij[i, j]


@subroutine
def fill_squares(square_i, group_i, square_c, q_cd):
    """Q, without the diagonal's cells."""
    for c in range(square_c.size):
        for d in range(square_c.size):
            q_cd[c, d] = square_c[c] * square_c[d]
    for i in range(group_i.size):
        q_cd[group_i[i], group_i[i]] -= square_i[i] * square_i[i]


@subroutine
def change(sums, c, out_c, in_c, both_c, sign):
    """Add an actor to group c, or take it away."""
    a_cd, q_cd, explained_cd = sums
    for d in range(out_c.size):
        a_cd[c, d] += sign * out_c[d]
        a_cd[d, c] += sign * in_c[d]
        q_cd[c, d] += sign * both_c[d]
        q_cd[d, c] += sign * both_c[d]
    for d in range(out_c.size):
        explained_cd[c, d] = explained(a_cd[c, d], q_cd[c, d])
        explained_cd[d, c] = explained(a_cd[d, c], q_cd[d, c])


@subroutine
def gain(sums, c, out_c, in_c, both_c):
    """What an actor adds to what is explained, if it joins group c."""
    a_cd, q_cd, explained_cd = sums
    total = explained(a_cd[c, c] + out_c[c] + in_c[c], q_cd[c, c] + 2.0 * both_c[c]) - explained_cd[c, c]
    for d in range(out_c.size):
        if d != c:
            q = q_cd[c, d] + both_c[d]
            total += explained(a_cd[c, d] + out_c[d], q) - explained_cd[c, d]
            total += explained(a_cd[d, c] + in_c[d], q) - explained_cd[d, c]
    return total


@subroutine(error_model="numpy")
def explained(a, q):
    """Half of a^2 / q."""
    return 0.5 * a * a / q if a > 0.0 and q > LEAST else 0.0


@subroutine
def drawn(gain_c, temperature, uniform):
    """A group, with probabilities proportional to exp(gain_c / temperature)."""
    most, total = gain_c.max(), 0.0
    for c in range(gain_c.size):
        gain_c[c] = math.exp((gain_c[c] - most) / temperature)
        total += gain_c[c]
    left = uniform * total
    for c in range(gain_c.size):
        left -= gain_c[c]
        if left < 0.0:
            return c
    return gain_c.argmax()
