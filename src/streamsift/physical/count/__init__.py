"""Choose how the matches of each alternative are aggregated.

- `strategy`: find what keeps each strategy from counting an alternative, and take the cheapest of the others.

Without a window prefixes are counted (`prefix`); within one, start events are marked (`sem`) if they are few, else the
window is a product on two stacks (`two-stack`); predicates between neighbors are counted by `pairs`; anything else is
detected first (`detect`).
"""

from streamsift.physical.count.strategy import SEM_NS_PER_START, TWO_STACK_NS_PER_LEVEL, aggregation, is_at_edge
