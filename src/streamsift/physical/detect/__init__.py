"""TODO"""

from streamsift.physical.detect.caching import value_reads, with_caching
from streamsift.physical.detect.cost import OPEN_NS, CostModel, Statistics, cheapest
from streamsift.physical.detect.definition_windows import (
    PLACE,
    WindowBound,
    since,
    until,
    upper_edge,
    window_bound,
    window_predicates,
)
from streamsift.physical.detect.equalities import Equalities
from streamsift.physical.detect.keys import shared_columns
from streamsift.physical.detect.partial_keys import PartialKey, partial_key
from streamsift.physical.detect.steps import Scope, step_of

__all__ = [
    "OPEN_NS",
    "PLACE",
    "CostModel",
    "Equalities",
    "PartialKey",
    "Scope",
    "Statistics",
    "WindowBound",
    "cheapest",
    "partial_key",
    "shared_columns",
    "since",
    "step_of",
    "until",
    "upper_edge",
    "value_reads",
    "window_bound",
    "window_predicates",
    "with_caching",
]
