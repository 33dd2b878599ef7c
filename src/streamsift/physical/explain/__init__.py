"""TODO"""

from streamsift.physical.explain.explain import explain
from streamsift.physical.explain.groups import group_reasons
from streamsift.physical.explain.joins import draw, names_of
from streamsift.physical.explain.stream import describe_stream

__all__ = ["describe_stream", "draw", "explain", "group_reasons", "names_of"]
