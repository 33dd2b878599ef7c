"""Work on plain arrays: this room knows no plan, no query and no event.

- `dtypes`: names the types of arrays that kernels take, and codes with a meaning of their own
- `comparing`: numbers the operators of predicates, and compares codes by them
- `searching`: searches sorted arrays from kernels
- `grouping`: groups and selects entries
- `numbering`: numbers equal values by hashing, and short texts in their order
- `row_set`: tells which rows of numbers are among others
- `range_tree`: takes the greatest numbers of any stretch (a segment tree of maxima)
- `growing`: doubles arrays that kernels append to
- `append_buffer`: appends to columns and tables at one end and drops at the other
- `parts`: lays arrays end to end
- `doubles`: computes with the doubles around a time
- `floor_quotients`: finds the ticks of UPDATE around times
"""
