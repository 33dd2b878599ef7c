"""Measure detection: flat sequences, join trees, condensing and the time per stage."""
