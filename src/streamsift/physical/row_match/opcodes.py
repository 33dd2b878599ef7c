"""Number the instructions that conditions of the match are compiled to, and how they reach rows.

The instructions work on a stack of 64-bit words: an integer, the bits of a double, the code of a string, or a truth
value 0 or 1. NULL is one word for all of them.
"""

from __future__ import annotations

# Push a word.
VALUE = 0  # column a at the row of reach b
CONSTANT = 1  # constant a
REGISTER = 2  # register a
COUNT_ROWS = 3  # the number of rows of the match
MATCH_NUMBER = 4
CLASSIFIER = 5  # the code of the label of the row of reach b
SUM = 6  # register a, null if register b, a count, is 0
AVERAGE = 7  # register a (c = 1: a double) as a double, divided by register b

# Replace one or two words by the result. On integers, b = 1 raises on overflow, b = 0 returns null.
ADD, SUBTRACT, MULTIPLY, REMAINDER, NEGATE, ABSOLUTE = 10, 11, 12, 13, 14, 15
SCALE = 16  # multiply an integer by constant a; overflow raises
TO_DOUBLE = 17  # an integer times constant a, divided by constant b (both doubles)
ADD_DOUBLE, SUBTRACT_DOUBLE, MULTIPLY_DOUBLE, DIVIDE_DOUBLE, REMAINDER_DOUBLE = 20, 21, 22, 23, 24
NEGATE_DOUBLE, ABSOLUTE_DOUBLE, POWER, SQUARE_ROOT, LOGARITHM, EXPONENTIAL = 25, 26, 27, 28, 29, 30
GREATEST, LEAST, GREATEST_DOUBLE, LEAST_DOUBLE, COALESCE = 31, 32, 33, 34, 35

# Comparisons: a is one of the numbers below. MIXED compares an integer with a double, exactly.
COMPARE, COMPARE_DOUBLE, COMPARE_MIXED = 40, 41, 42
EQUAL, UNEQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL = 0, 1, 2, 3, 4, 5
COMPARE_VALUES = 43  # comparison a of two VALUEs: the next two instructions, which are not executed

# Three-valued logic; CASE takes condition, value and the value otherwise.
AND, OR, NOT, IS_NULL, CASE = 50, 51, 52, 53, 54

# The row from which a reach starts.
FROM_CURRENT, FROM_FIRST, FROM_LAST, FROM_REGISTER = 0, 1, 2, 3

# What a register holds, and how it is updated when a row with one of its labels is consumed.
LAST_ROW = 0  # the row; with source >= 0, the earlier value of register `source`
FIRST_ROW = 1  # the row, if it is unset and register `source` (-1: none) is set
COUNT_VALUES = 2  # add 1; with column >= 0, only if it is not null
SUM_INTEGERS, SUM_DOUBLES = 3, 4
MINIMUM, MAXIMUM, MINIMUM_DOUBLE, MAXIMUM_DOUBLE = 5, 6, 7, 8

# How failed states are kept.
FORGET = 0  # not at all
KEEP_FAILED = 1  # whether the state, a label and a row, has failed: for every start
KEEP_LIMITS = 2  # up to which end of the window it has failed
KEEP_REGISTERS = 3  # in a table, with the registers that the rest reads
