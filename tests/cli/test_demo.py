"""What the demos do is tested in tests/experiments."""

from tests.commands import fails


def test_demo_refuses_levels_that_are_none(here):
    assert "levels must be positive numbers (epsilon/N), got 'x'" in fails("demo", "--epsilon-per-unit", "1,x")
