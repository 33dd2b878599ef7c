"""Plan patterns with Kleene variables: bind single events, then the elements between them, then build groups.

- `alternatives`: plan the alternatives of an OR-free pattern, and the negations checked after groups are built;
- `forms`: rewrite patterns without definitions, with AND in each order and groups as events;
- `elements`: add variables for elements, and assign predicates to them;
- `steps`: plan the steps that bind elements;
- `search`: choose how groups are searched.

Maximal groups are built directly (`Growth.RANGES`), unless a longer group can rule out a match that a shorter one
allows (`EXTENTS`) or two groups can compete for the same event (`ELEMENTS`).
"""

from streamsift.physical.groups.alternatives import MAX_NEGATED_EVENTS, group_alternatives
from streamsift.physical.groups.elements import kleene_query
from streamsift.physical.groups.forms import without_definitions
from streamsift.physical.groups.search import group_reasons
