"""Measure rankings: best paths, merges and their schedules, and window moves."""
