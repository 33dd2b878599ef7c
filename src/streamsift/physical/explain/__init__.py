"""Describe queries and plans as text. Users and scripts read it, and golden files record it.

- `explain`: all stages of one query, with its steps, negations, counters and Kleene groups;
- `algebra`: the algebraic plan of the nested-pattern paper;
- `joins`: the joins of single events, and drawings of join trees;
- `rank`: the search for the top k;
- `share`: what several queries share;
- `stream`: how a query runs on a stream;
- `words`: the parts that several of them show.
"""

from streamsift.physical.explain.explain import explain
from streamsift.physical.explain.joins import draw, names_of
from streamsift.physical.explain.share import describe_sharing
from streamsift.physical.explain.stream import describe_stream
