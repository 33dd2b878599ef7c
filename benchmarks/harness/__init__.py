"""Check that contenders give equal answers, measure them in turns, and write one JSON record per run."""
