"""Measure Streamsift, its strategies and other engines: `python -m benchmarks` runs all benchmarks."""
