"""Measure detection on Spark as events, queries and results grow."""
