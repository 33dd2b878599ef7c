"""TODO"""

from streamsift.runtime.count.by_key import KeyTotals, loads_of
from streamsift.runtime.count.incremental_events import key_rows, of_events, prepared
from streamsift.runtime.count.incremental_keys import New, Stamps, WindowKeys, moments_of
from streamsift.runtime.count.incremental_measures import Unsteady, any_event, check_shape, steady_measures
from streamsift.runtime.count.measure_kernels import Records, continue_prefixes
from streamsift.runtime.count.measures import NOTHING, Decoder, Measures, Totals, measures_of
from streamsift.runtime.count.operations import NO_SEAL, Layout, keys_of_places, lay_out
from streamsift.runtime.count.output import (
    Groups,
    Timeline,
    aggregate_schema,
    as_batch,
    groups_of,
    result_batch,
    result_rows,
)
from streamsift.runtime.count.prefix_measures import BEFORE, Loads, Paths
from streamsift.runtime.count.range_totals import Canvas, Leaves
from streamsift.runtime.count.run import aggregate, paint_keys, relevant_places, relevant_stamps, timeline_of

__all__ = [
    "BEFORE",
    "NOTHING",
    "NO_SEAL",
    "Canvas",
    "Decoder",
    "Groups",
    "KeyTotals",
    "Layout",
    "Leaves",
    "Loads",
    "Measures",
    "New",
    "Paths",
    "Records",
    "Stamps",
    "Timeline",
    "Totals",
    "Unsteady",
    "WindowKeys",
    "aggregate",
    "aggregate_schema",
    "any_event",
    "as_batch",
    "check_shape",
    "continue_prefixes",
    "groups_of",
    "key_rows",
    "keys_of_places",
    "lay_out",
    "loads_of",
    "measures_of",
    "moments_of",
    "of_events",
    "paint_keys",
    "prepared",
    "relevant_places",
    "relevant_stamps",
    "result_batch",
    "result_rows",
    "steady_measures",
    "timeline_of",
]
