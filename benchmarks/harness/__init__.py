"""Workloads with their contenders in; equal answers checked, times taken in turns, one JSON record of the run out."""
