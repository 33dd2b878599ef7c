"""Plan the search for single events and negated sub-patterns.

- `steps`: plan the steps and negations of one scope, and which results are cached, by which values;
- `equalities`: tie equal columns to the one that is bound first;
- `definition_windows`: turn the windows of definitions into comparisons;
- `keys`: derive the columns that all events of a match share;
- `partial_keys`: derive a key of some variables; events of the others are replicated;
- `cost`: estimate rows, and find the cheapest join tree.

A left-deep tree is taken for negations and pairs; otherwise `cost.cheapest` chooses by measured statistics.
"""

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
from streamsift.physical.detect.steps import Bounded, Scope, bounded_negations, step_of, value_reads, with_caching
