"""Compare Kleene groups with SQL."""
