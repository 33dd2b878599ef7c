"""Describe queries and plans for people. The text is an interface, and kept by goldens.

- `explain`: all stages of one query, with its steps, negations, counters and Kleene groups;
- `algebra`: the algebraic plan of the nested-pattern paper;
- `joins`: how single events are joined, and join trees drawn;
- `rank`: how the best are found;
- `share`: what several queries share;
- `stream`: how a query runs on a stream;
- `words`: the words that all of them use.
"""

from streamsift.physical.explain.explain import explain
from streamsift.physical.explain.joins import draw, names_of
from streamsift.physical.explain.share import describe_sharing
from streamsift.physical.explain.stream import describe_stream
