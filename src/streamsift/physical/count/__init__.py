"""Choose how the matches of each alternative are aggregated.

- `strategy`: find the strategies that apply to an alternative, and choose the cheapest.

Without a window, prefixes are counted (`prefix`). With a window, start events are marked (`sem`) if they are few;
otherwise the window is a product on two stacks (`two-stack`). Predicates between adjacent events are counted by
`pairs`. For anything else, matches are found first (`detect`).
"""

from streamsift.physical.count.strategy import SEM_NS_PER_START, TWO_STACK_NS_PER_LEVEL, aggregation, is_at_edge
