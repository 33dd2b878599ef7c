"""Add Kleene groups to matches of single events.

- `search`: search for a pattern, or for a negated one inside it: collect elements, then build groups
- `elements`: find the elements of one variable for each match so far; enumerate combinations of n elements
- `problem`: describe the search for maximal groups: elements, keys, rules
- `rules`: test an assignment of elements to groups: order, window, whether an element can be added
- `growing`: build maximal groups as ranges of elements; compare assignments
- `contested`: build maximal groups element by element
- `negations`: check negations of single events on matches with groups

A `[n]` variable binds fixed-size groups: every combination of n elements. A `+` or `*` variable binds maximal groups.
If nothing constrains how its elements are combined (`KleeneGroups.independent`), its group has all elements. Otherwise
`Growth` selects the search: maximal ranges of elements; ranges of every extent, if a longer group may be forbidden
where a shorter one is not; element by element, if two groups can bind the same event.
"""

from streamsift.runtime.groups.search import GroupSearch
