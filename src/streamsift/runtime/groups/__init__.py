"""Add the groups of Kleene variables to matches of single events.

- `search`: drive the search of a pattern, or of a negated one inside it; collect elements, then build groups
- `elements`: find the elements of one variable for each match so far; choose n of them
- `problem`: describe the search for `+` and `*` groups: collected elements, keys, rules
- `rules`: test an assignment of elements to groups: order, window, whether it could grow
- `growing`: build groups as ranges of elements; compare assignments with each other
- `contested`: build groups element by element
- `negations`: test negations of single events on matches with groups

A `[n]` variable takes every choice of n elements. A `+` or `*` variable takes all its elements if nothing stands
between them (`Groups.independent`). Otherwise `Growth` chooses: ranges as long as they can be; ranges of every extent,
if a longer group may be forbidden where a shorter one is not; element by element, if two groups may want one event.
"""

from streamsift.runtime.groups.search import GroupSearch
