"""Aggregate the matches of a query (AGG), if possible without building them.

- `run`: run an aggregation plan; which branch is counted how
- `groups`: what every strategy reads, and the totals over time that it returns
- `measures`: what each event adds to a match, the measures of matches, and totals as Arrow columns
- `extremes`: codes for MIN and MAX, by rank or by value
- `operations`: events as operations on prefix counters, key by key
- `prefix_tree`: prefixes of one pattern or of several, their columns of measures, and their records
- `by_key`: choose and run the kernels that count each key
- `count_kernels`, `measure_kernels`: the kernels for COUNT alone, and for all measures
- `pairs`: dynamic programming over pairs of neighboring events
- `range_totals`: a range-add segment tree that adds up keys, branches and matches
- `incremental`, `incremental_keys`: totals that are updated batch by batch, and the state of their keys
- `output`: result rows

The plan names a strategy for each branch (`physical/count`): PREFIX without a window, TWO_STACK in a window, SEM (start
event marking) for negations at its edges or if few starts are in it, PAIRS for predicates between neighboring events,
DETECT for everything else. Streams use `IncrementalTotals` for PREFIX and for TWO_STACK in time windows.
"""

from streamsift.runtime.count.by_key import LARGEST_COUNT, count_layout
from streamsift.runtime.count.count_kernels import record_count
from streamsift.runtime.count.extremes import NotIncremental
from streamsift.runtime.count.groups import AggregateInput, Timeline
from streamsift.runtime.count.incremental import IncrementalTotals
from streamsift.runtime.count.measures import measures_of
from streamsift.runtime.count.operations import Operations, SymbolEvents, arrange
from streamsift.runtime.count.output import aggregate_schema, relevant_places, result_batch
from streamsift.runtime.count.prefix_tree import TotalRecords, tree_of
from streamsift.runtime.count.run import aggregate
