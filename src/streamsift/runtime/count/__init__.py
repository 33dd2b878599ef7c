"""Aggregate the matches of a query (AGG), if possible without building them.

- `run`: run an aggregation plan with the strategy of each branch
- `groups`: the input of all strategies, and the totals over time that they return
- `measures`: the terms of each event, the measures of matches, and totals as Arrow columns
- `extremes`: codes for MIN and MAX, by rank or by value
- `operations`: events as operations on prefix counters, by key
- `prefix_tree`: prefixes of one or several patterns, their columns of measures, and their records
- `by_key`: choose and run the kernels that count each key
- `count_kernels`, `measure_kernels`: the kernels for COUNT alone, and for all measures
- `pairs`: dynamic programming over pairs of neighboring events
- `range_totals`: a range-add segment tree that sums keys, branches and matches
- `incremental`, `incremental_keys`: totals that are updated batch by batch, and the state of each key
- `group_trees`: the totals of a group as a tree over its keys
- `parts`: totals of different keys, added up for each tick
- `output`: result rows

The plan names a strategy for each branch (`physical/count`):

- PREFIX: no window
- TWO_STACK: a window
- SEM (start event marking): a window with leading or trailing negations, or with few start events
- PAIRS: predicates between neighboring events
- DETECT: everything else

Streams use `IncrementalTotals` for PREFIX and for TWO_STACK in time windows.
"""

from streamsift.runtime.count.by_key import LARGEST_COUNT, count_layout
from streamsift.runtime.count.count_kernels import record_count
from streamsift.runtime.count.extremes import NotIncremental
from streamsift.runtime.count.groups import AggregateInput, Timeline
from streamsift.runtime.count.incremental import SPARE_KEYS, IncrementalTotals, check_finite, in_times
from streamsift.runtime.count.incremental_keys import Counted, Visit, WindowKeys, key_rows
from streamsift.runtime.count.measures import measures_of
from streamsift.runtime.count.operations import Layout, Operations, SymbolEvents, arrange
from streamsift.runtime.count.output import aggregate_schema, relevant_places, result_batch
from streamsift.runtime.count.parts import merged_totals
from streamsift.runtime.count.prefix_tree import TotalRecords, tree_of
from streamsift.runtime.count.run import aggregate
