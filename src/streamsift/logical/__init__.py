"""Syntax tree to bound query: names, types, scopes, windows."""

from streamsift.logical.binder import bind, check, sketch
from streamsift.logical.bound import BoundQuery

__all__ = ["BoundQuery", "bind", "check", "sketch"]
