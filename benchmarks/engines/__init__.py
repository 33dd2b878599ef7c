"""Run a workload on Streamsift and on other engines, each as a contender of the harness."""
