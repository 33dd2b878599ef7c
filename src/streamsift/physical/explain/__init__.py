"""TODO"""

from streamsift.physical.explain.explain import explain
from streamsift.physical.explain.joins import draw, names_of
from streamsift.physical.explain.share import describe_sharing
from streamsift.physical.explain.stream import describe_stream

__all__ = ["describe_sharing", "describe_stream", "draw", "explain", "names_of"]
