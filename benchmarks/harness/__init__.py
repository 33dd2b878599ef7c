"""Check that all engines return equal results, measure them in turns, and write one JSON record per run."""
