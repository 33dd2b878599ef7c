"""Read values of matches, filter and score matches, and build result batches.

- `group_matches`: hold a chunk of matches as places
- `values`: read the columns of matches; apply predicates that kernels do not support
- `scores`: evaluate the objectives of a ranking
- `output`: build the record batches of the result

Matches with and without Kleene groups have the same type.
"""

from streamsift.runtime.matches.group_matches import GroupMatches, parts_of
from streamsift.runtime.matches.output import match_schema, most_matches, result_batches
from streamsift.runtime.matches.scores import merged_scores, objective_score, objective_values, scores
from streamsift.runtime.matches.values import GroupValues, Stage, determined_columns, match_columns, passing, stages_of
