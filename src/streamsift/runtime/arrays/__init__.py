"""Work on plain arrays: this room knows no plan, no query and no event.

- `dtypes`: name the types of arrays that kernels take, and codes with a meaning of their own
- `comparing`: compare codes by the operators of predicates, and search sorted arrays
- `grouping`: group and select entries
- `hashing`: number equal values, find rows among others, code short texts
- `range_tree`: read the greatest numbers of any stretch (a segment tree of maxima)
- `growing`: append to arrays, columns and tables, and lay arrays end to end
- `doubles`: find the doubles and the ticks of UPDATE around times
"""
