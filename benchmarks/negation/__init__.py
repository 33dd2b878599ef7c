"""Nested sequences with negation, here, on Spark and in SQL."""
