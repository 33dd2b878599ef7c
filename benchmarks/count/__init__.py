"""Measure counting, in one process and on Spark."""
