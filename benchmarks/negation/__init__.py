"""Measure nested sequences with negation, locally, on Spark and in SQL."""
