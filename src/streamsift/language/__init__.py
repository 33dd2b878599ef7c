"""Parse query text into a syntax tree, and print a tree as text.

- `grammar.lark`: the grammar, LALR(1);
- `keywords`: list the words of the language, for all modules below;
- `tokens`: resolve words and brackets by their context, so that the grammar needs no look-ahead;
- `parser`: parse a script, or an expression or clauses alone;
- `tree`: convert a parse tree to a syntax tree;
- `syntax`: define the classes of the syntax tree;
- `mistakes`: explain syntax errors;
- `printer`: print a syntax tree as canonical text, which parses to the same tree;
- `highlight`: highlight queries with Pygments;
- `row_match`: parse and print MATCH_RECOGNIZE;
- `textmate`: generate the TextMate grammar for editors.
"""

from streamsift.language.parser import parse, parse_clauses, parse_expression
from streamsift.language.printer import print_expression, print_pattern, print_script
from streamsift.language.syntax import Script
