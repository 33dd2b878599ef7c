"""Plan patterns with Kleene variables: single events first, elements between them, groups last.

- `alternatives`: plan the alternatives of an OR-free pattern, and the negations that groups decide;
- `forms`: rewrite patterns into forms without definitions, with AND ordered and groups as events;
- `elements`: give elements variables of their own, and predicates to them;
- `steps`: plan the steps that bind elements;
- `search`: choose how groups are searched.

Maximal groups are made directly (`Growth.RANGES`), unless a longer group may forbid what a shorter one allows
(`EXTENTS`) or two groups may want the same event (`ELEMENTS`).
"""

from streamsift.physical.groups.alternatives import MAX_NEGATED_EVENTS, group_alternatives
from streamsift.physical.groups.elements import kleene_query
from streamsift.physical.groups.forms import without_definitions
from streamsift.physical.groups.search import group_reasons
