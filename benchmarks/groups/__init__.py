"""Kleene groups against SQL."""
