"""Run a workload on Streamsift and on other engines."""
