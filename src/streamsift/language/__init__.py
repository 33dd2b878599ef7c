"""Parse query text into a syntax tree, and print a tree as text.

- `grammar.lark`: the grammar, LALR(1);
- `tokens`: settle what each word and bracket means by its place, so that the grammar needs no look-ahead;
- `parser`: parse a script, or an expression or clauses alone;
- `tree`: build the syntax tree of a parse tree;
- `syntax`: the classes of the syntax tree;
- `mistakes`: say what is wrong with text that does not parse, and what to do;
- `printer`: print a syntax tree as canonical text, which parses to the same tree.
"""

from streamsift.language.parser import parse, parse_clauses, parse_expression
from streamsift.language.printer import print_expression, print_pattern, print_script
from streamsift.language.syntax import Script
