"""Read the values of matches, filter and score them, and write them as result batches.

- `group_matches`: holds a chunk of matches as places
- `values`: reads the columns of matches, gathered once; applies predicates that no kernel can test
- `scores`: evaluates the objectives of a ranking
- `output`: writes matches as record batches

Matches with Kleene groups and matches without are one type: a match without groups has none of them.
"""

from streamsift.runtime.matches.group_matches import GroupMatches, parts_of
from streamsift.runtime.matches.output import match_schema, most_matches, result_batches
from streamsift.runtime.matches.scores import merged_scores, objective_score, objective_values, scores
from streamsift.runtime.matches.values import GroupValues, Stage, determined_columns, match_columns, passing, stages_of
