"""Parse MATCH_RECOGNIZE into a syntax tree, and print a tree as text.

- `syntax`: define the classes of the syntax tree.
"""

from streamsift.language.row_match.syntax import MatchRecognize, RowScript
