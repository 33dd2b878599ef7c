"""Workloads, rivals and the ratios between them: `python -m benchmarks` runs all."""
