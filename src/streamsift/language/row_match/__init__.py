"""Parse MATCH_RECOGNIZE into a syntax tree, and print a tree as text.

- `grammar.lark`: the grammar, LALR(1);
- `tokens`: resolve words by their context;
- `parser`: parse the clause, alone or with MATCH_RECOGNIZE around it;
- `tree`: convert a parse tree to a syntax tree;
- `labels`: find labels, and mark the names that begin with one;
- `literals`: read strings and intervals;
- `syntax`: define the classes of the syntax tree;
- `mistakes`: explain syntax errors;
- `statement`: find the clauses of an SQL statement;
- `printer`: print a syntax tree as canonical text, and an expression as Spark SQL.
"""

from streamsift.language.row_match.parser import is_match_recognize, parse_rows
from streamsift.language.row_match.printer import print_row_expression, print_row_pattern, print_rows, spark_sql
from streamsift.language.row_match.syntax import MatchRecognize, RowScript
