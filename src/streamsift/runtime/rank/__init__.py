"""TODO"""

from streamsift.runtime.rank.analyze import merge_accesses
from streamsift.runtime.rank.output import rank_schema, tie_names
from streamsift.runtime.rank.run import rank
