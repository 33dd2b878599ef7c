"""Generate event streams full of ties, nulls and duplicates, and valid queries that mix all operators.

These are Hypothesis strategies. Queries are syntax trees, valid by construction for streams with the columns of
`COLUMNS`; `t` is the time. Streams and queries draw from the same few values, so that predicates often hold and queries
often have matches.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

from hypothesis import strategies as st

from streamsift.language import print_expression
from streamsift.language import syntax as s

T = TypeVar("T")
Event = dict[str, Any]

COLUMNS = {"t": "int64", "kind": "string", "id": "int64", "x": "double", "n": "int64", "s": "string", "seq": "int64"}
KINDS = ("A", "B", "C", "D")
BEYOND_DOUBLES = 2**53  # the next integer is the same double

_VALUES: dict[str, list[Any]] = {
    "kind": [*KINDS[:3] * 5, *KINDS, None],
    "id": [*[1] * 8, *[2] * 4, 3, None, BEYOND_DOUBLES, BEYOND_DOUBLES + 1],
    "x": [*[1.0, 2.0] * 4, 0.0, 1.5, 3.0, -1.0, -0.0, float("nan"), float("inf"), float("-inf"), None],
    "n": [*[1, 2] * 3, 0, 3, -1, None],
    "s": [*["a", "b"] * 3, "ab", "A", "", None],
}


_ROWS = st.fixed_dictionaries({column: st.sampled_from(values) for column, values in _VALUES.items()})
# Create strategies once: Hypothesis analyzes each new one, which takes as long as drawing from it.
_PERCENT = st.integers(0, 99)
_SIZES = st.sampled_from([4, 5, 6, 7, 8, 9, 10, 12, 14, 6, 8, 3, 2, 1, 0])
_GAPS = st.sampled_from([1, 0, 1, 0, 1, 2, 3])
_REPEATED = st.sampled_from([0, 0, 0, 1, 2])
_PERMUTED = st.sampled_from([False, False, True])


@cache
def _index(size: int) -> st.SearchStrategy[int]:
    return st.sampled_from(range(size))


@cache
def _places(position: int) -> st.SearchStrategy[int]:
    return st.sampled_from([position, position, 0, 1])


# --- streams -------------------------------------------------------------------------------------------------------


@st.composite
def streams(draw: st.DrawFn, max_size: int = 14, latest: int = 9) -> list[Event]:
    """Generate rows in input order, which is usually but not always time order."""
    size = min(draw(_SIZES), max_size)
    rows: list[Event] = []
    for position in range(size):
        time = (rows[-1]["t"] if rows else 0) + draw(_GAPS)
        rows.append({"t": min(time, latest), **draw(_ROWS), "seq": draw(_places(position))})
    for _ in range(draw(_REPEATED) if 0 < size < max_size else 0):
        rows.append(dict(rows[draw(_index(len(rows)))]))
    if draw(_PERMUTED):
        rows = draw(st.permutations(rows))
    return rows[:max_size]


@st.composite
def sparse_streams(draw: st.DrawFn, max_size: int = 24) -> list[Event]:
    """Generate rows of several keys over several time windows, which evict state and fill time slices and buckets.

    Rows are drawn from a seed. Hypothesis would draw rows one by one too slowly.
    """
    chance, size = random.Random(draw(st.integers(0, 2**32))), draw(st.sampled_from([max_size, max_size // 2, 5, 3, 1]))
    gaps = draw(st.sampled_from([[1, 2, 3, 4], [0, 1, 1, 2, 3], [0, 0, 1, 6], [2, 3, 5]]))
    kinds = draw(st.sampled_from([KINDS[:2], KINDS[:3], ("A", "A", "B", "C", "D", None)]))
    time, rows = draw(st.sampled_from([0, 0, -30, 1000])), list[Event]()
    for place in range(size):
        time += chance.choice(gaps)
        values = {column: chance.choice(_VALUES[column]) for column in ("x", "n", "s")}
        identity = chance.choice([1, 2, 3, 4, 5, 6, 7, 1, 2, 3, None, BEYOND_DOUBLES, BEYOND_DOUBLES + 1])
        rows.append({"t": time, "kind": chance.choice(kinds), "id": identity, **values, "seq": place})
    return rows


@st.composite
def bindings(draw: st.DrawFn) -> dict[str, str]:
    """Generate the column binding of a stream; without `type`, every row is in every class."""
    type_column = draw(st.sampled_from([{"type": "kind"}, {"type": "kind"}, {}]))
    order_column = draw(st.sampled_from([{}, {"order": "seq"}]))
    return {"time": "t", **type_column, **order_column}


# --- what queries may contain --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Features:
    """The parts of the language that a generated query may use.

    With `kleene`, the oracle tries every group of rows: use `streams(max_size=7)`.
    """

    max_variables: int = 5
    max_depth: int = 3
    negation: bool = True
    conjunction: bool = True
    disjunction: bool = True
    kleene: bool = True
    kleene_pairs: bool = False  # predicates between two Kleene variables, or one and a negated one: may be unsupported
    detection: bool = True
    aggregates: bool = True
    ranking: bool = True
    linear: bool = False  # most preferences are weighted sums
    definitions: bool = True
    windows: bool = True
    negations: int = 25  # percentage of the components
    groups: int = 30  # percentage of the variables
    own_windows: bool = False  # most nested operators are definitions with short windows


FLAT = Features(
    max_depth=2,
    negation=False,
    conjunction=False,
    disjunction=False,
    kleene=False,
    aggregates=False,
    ranking=False,
    definitions=False,
)


@st.composite
def queries(draw: st.DrawFn, /, **features: Any) -> s.Script:
    """Generate scripts that mix all operators; keyword arguments are those of Features."""
    return _Writer(draw, Features(**features)).script()


@st.composite
def aggregations(draw: st.DrawFn, /, **features: Any) -> s.Script:
    """Generate scripts with AGG; keyword arguments are those of Features."""
    return _Writer(draw, Features(**features)).script("aggregate")


@st.composite
def neighbour_aggregations(draw: st.DrawFn) -> s.Script:
    """Generate aggregations of a sequence with predicates between adjacent variables."""
    writer = _Writer(draw, replace(FLAT, max_variables=4, negation=True, aggregates=True))
    script = writer.script("aggregate")
    events = [operand for operand in getattr(script.statement.pattern, "operands", ()) if isinstance(operand, s.Event)]
    names = [event.variable or event.class_name for event in events]
    pieces = [writer.pair([(one,), (other,)]) for one, other in pairwise(names) if writer.chance(80)]
    if not pieces:
        return script
    where = pieces[0] if len(pieces) == 1 else s.AllOf(tuple(pieces))
    return replace(script, statement=replace(script.statement, where=where))


@st.composite
def tying_queries(draw: st.DrawFn) -> s.Script:
    """Generate patterns with Kleene groups, most of whose elements are compared by `=` with other variables."""
    features = Features(max_variables=3, max_depth=2, groups=55, negations=35, aggregates=False, definitions=False)
    writer = _Writer(draw, replace(features, ranking=False))
    return writer.script(ties=True)


def any_queries() -> st.SearchStrategy[s.Script]:
    """Generate queries of every kind: detection, aggregation and ranking with all operators, groups and negations."""
    return st.one_of(
        flat_queries(),
        negating_queries(),
        queries(aggregates=False, ranking=False),
        queries(aggregates=False, ranking=False, kleene_pairs=True, definitions=False),
        group_queries(),
        queries(aggregates=False, ranking=False, max_variables=3, negations=40, kleene_pairs=True),
        aggregations(),
        neighbour_aggregations(),
        queries(detection=False, aggregates=False),
        queries(max_depth=2, detection=False, aggregates=False, kleene=False, negation=False, linear=True),
    )


def on_a_stream(script: s.Script) -> s.Script:
    """Add the clauses that a stream requires: WITHIN for matches, WITHIN and UPDATE for rankings."""
    statement = script.statement
    is_ranking = statement.preference is not None or (statement.returns is not None and statement.returns.limit)
    if is_ranking or not statement.aggregates:
        statement = replace(statement, window=statement.window or s.Window(s.Duration(3, s.Unit.NONE)))
    if is_ranking and statement.window is not None:
        statement = replace(statement, update=statement.update or s.Duration(2, statement.window.length.unit))
    return replace(script, statement=statement)


@st.composite
def nearest_queries(draw: st.DrawFn) -> s.Script:
    """Generate queries in which components of SEQ are NEXT or LATEST, and which may end at an UNTIL."""
    script = draw(
        st.one_of(
            flat_queries(4),
            queries(max_variables=4, groups=15, aggregates=False, ranking=False),
            queries(max_variables=4, kleene=False, detection=False),
            negating_queries(),
        )
    )
    chance = random.Random(draw(st.integers(0, 2**32)))
    names = {definition.name for definition in script.definitions}
    definitions = tuple(
        replace(each, statement=_with_nearest(each.statement, names, chance)) for each in script.definitions
    )
    statement = _with_nearest(script.statement, names, chance)
    if chance.random() < 0.3:
        statement = _with_until(statement, names, chance)
    return s.Script(definitions, statement)


def _with_nearest(statement: s.Statement, names: set[str], chance: random.Random) -> s.Statement:
    def changed(pattern: Any, has_before: bool, has_after: bool, in_sequence: bool) -> Any:
        match pattern:
            case s.Event():
                allowed = [*[s.Nearest.NEXT] * has_before, *[s.Nearest.LATEST] * has_after]
                is_nearest = in_sequence and pattern.class_name not in names and allowed and chance.random() < 0.6
                return replace(pattern, nearest=chance.choice(allowed)) if is_nearest else pattern
            case s.Not():
                return replace(pattern, operand=changed(pattern.operand, has_before, has_after, False))
        positive = [not isinstance(operand, s.Not) for operand in pattern.operands]
        is_sequence = isinstance(pattern, s.Seq)
        operands = tuple(
            changed(
                operand,
                has_before or (is_sequence and any(positive[:at])),
                has_after or (is_sequence and any(positive[at + 1 :])),
                is_sequence,
            )
            for at, operand in enumerate(pattern.operands)
        )
        return replace(pattern, operands=operands)

    # The bound of a definition without a window depends on where it is used; SEQ gives its inner components bounds.
    return replace(statement, pattern=changed(statement.pattern, False, False, in_sequence=False))


def _with_until(statement: s.Statement, names: set[str], chance: random.Random) -> s.Statement:
    """Add UNTIL to a SEQ that begins and ends with a single event."""
    pattern = statement.pattern
    if not isinstance(pattern, s.Seq) or any(isinstance(each, s.SameAttribute) for each in pattern.predicates):
        return statement
    positive = [operand for operand in pattern.operands if not isinstance(operand, s.Not)]
    ends = positive[:1] + positive[-1:]
    if len(positive) < 2 or any(
        not isinstance(end, s.Event) or end.quantifier or end.class_name in names for end in ends
    ):
        return statement
    kind = chance.choice([*KINDS[:3], "ANY"])
    statement = replace(statement, until=s.Event(kind, "stop", any_row=kind == "ANY"))
    if chance.random() < 0.5:
        name = ends[0].variable or ends[0].class_name  # type: ignore[union-attr]
        piece = s.Comparison((s.Name(("stop", "n")), s.Name((name, "n"))), (chance.choice(["<", ">=", "="]),))
        where = piece if statement.where is None else s.AllOf((statement.where, piece))
        statement = replace(statement, where=where)
    return statement


@st.composite
def group_queries(draw: st.DrawFn, forms: Sequence[str] = ("detect", "detect", "aggregate", "rank")) -> s.Script:
    """Generate short patterns with Kleene groups: leading, in the middle, trailing, negated, in branches of OR."""
    form = draw(st.sampled_from(forms))
    features = Features(max_variables=3, max_depth=2, groups=70, kleene_pairs=draw(st.booleans()), definitions=False)
    return _Writer(draw, features).script(form)


@st.composite
def flat_queries(draw: st.DrawFn, max_variables: int = 5) -> s.Script:
    """Generate flat sequences, possibly with nested SEQ, with all kinds of predicates and clauses."""
    return _Writer(draw, replace(FLAT, max_variables=max_variables)).script()


@st.composite
def negating_queries(draw: st.DrawFn) -> s.Script:
    """Generate patterns with many nested negations and predicates between any two variables."""
    features = Features(
        max_variables=7, max_depth=4, kleene=False, aggregates=False, ranking=False, definitions=False, negations=55
    )
    return _Writer(draw, features).script()


@st.composite
def defining_queries(draw: st.DrawFn, /, **features: Any) -> s.Script:
    """Generate scripts with many definitions that have windows; keyword arguments are those of Features."""
    return _Writer(draw, Features(own_windows=True, **features)).script()


# --- patterns, before their variables have names -------------------------------------------------------------------


@dataclass(eq=False)
class _Slot:
    """A variable. Its position determines which clauses may use it."""

    class_name: str
    quantifier: s.Quantifier | None
    negations: tuple[int, ...]  # the enclosing negations, outermost first
    definition: str | None = None
    name: str = ""
    named: bool = True  # False: the class name serves as the variable

    @property
    def is_group(self) -> bool:
        return self.quantifier is not None

    @property
    def can_be_empty(self) -> bool:
        return self.quantifier is not None and self.quantifier.repeat is s.Repeat.ANY_NUMBER

    def path(self, definition: str | None) -> tuple[str, ...]:
        """Return the parts of its name in a clause of the statement or of its definition."""
        return (self.name,) if self.definition in (None, definition) else (self.definition or "", self.name)


@dataclass(eq=False)
class _Node:
    """An operator (Seq, And, Or, Not), a reference to a definition, or a leaf."""

    kind: type[s.Seq] | type[s.And] | type[s.Or] | type[s.Not] | None
    children: list[_Node] = field(default_factory=list)
    slot: _Slot | None = None
    definition: str | None = None

    def slots(self) -> Iterator[_Slot]:
        if self.slot is not None:
            yield self.slot
        for child in self.children:
            yield from child.slots()

    def nodes(self) -> Iterator[_Node]:
        yield self
        for child in self.children:
            yield from child.nodes()

    def can_be_empty(self) -> bool:
        if self.slot is not None:
            return self.slot.can_be_empty
        if self.kind is s.Not:
            return True
        return (any if self.kind is s.Or else all)(child.can_be_empty() for child in self.children)


_ODD_NAMES = ["min", "größe", "my var", "where", "by", "select"]
_NAMES = [*"pqruvwyz", *_ODD_NAMES, *(f"v{i}" for i in range(30))]
_WITH_CLASSES = ["Big", "Low", "Even", "größer als"]
# The classes that a query draws from. Long patterns have matches only if their classes have many rows.
_PALETTES = [
    ["ANY", "ANY", "ANY", "A", "B"],
    ["ANY", "Big", "A"],
    [*KINDS[:3] * 3, *["ANY"] * 4, *_WITH_CLASSES[:2], *_WITH_CLASSES, "D", "Nobody"],
    [*KINDS[:2]],
]


class _Writer:
    def __init__(self, draw: st.DrawFn, features: Features) -> None:
        self.draw, self.features = draw, features
        sizes = [n for n in (2, 3, 1, *range(4, features.max_variables + 1)) if n <= features.max_variables]
        self.left = draw(st.sampled_from(sizes))  # number of variables still to place
        self.palette = self.one(_PALETTES)
        self.negations = 0
        self.classes: dict[str, s.Expression] = {}
        self.definitions: dict[str, _Node] = {}

    def one(self, options: Sequence[T]) -> T:
        return options[self.draw(_index(len(options)))]

    def chance(self, percent: int) -> bool:
        return percent > 0 and self.draw(_PERCENT) >= 100 - percent

    # --- the pattern's shape ---
    def pattern(self, depth: int, around: tuple[int, ...]) -> _Node:
        kinds: list[Any] = [s.Seq] * 3
        kinds += [s.And] * self.features.conjunction + [s.Or] * self.features.disjunction
        if self.left <= 1 or depth <= 0:
            return self.leaf(around)
        kind = self.one(kinds)
        width = self.draw(st.integers(1 if self.chance(5) else 2, max(2, min(4, self.left))))
        if not around and depth == self.features.max_depth and self.chance(60):
            width = max(2, self.left)
        children: list[_Node] = []
        for _ in range(width):
            if not children or self.left > 0:
                children.append(self.component(kind, depth - 1, around))
        node = _Node(kind, children)
        if all(child.kind is s.Not for child in children):
            children.append(self.leaf(around))
        if not self.features.windows:
            self.no_open_edges(node)
        return node

    def component(self, kind: type, depth: int, around: tuple[int, ...]) -> _Node:
        if self.features.negation and kind is not s.Or and self.chance(self.features.negations):
            self.negations += 1
            inner = self.nonempty(self.nested(depth, (*around, self.negations)))
            return _Node(s.Not, [inner])
        return self.nested(depth, around)

    def nested(self, depth: int, around: tuple[int, ...]) -> _Node:
        return (
            self.pattern(depth, around)
            if self.chance((70 if self.features.own_windows else 35) if not around else self.features.negations)
            else self.leaf(around)
        )

    def nonempty(self, node: _Node) -> _Node:
        """Replace `*` by `+` in a negated pattern, because negating a pattern that can be empty is an error."""
        if node.can_be_empty():
            for slot in node.slots():
                if slot.can_be_empty:
                    slot.quantifier = s.Quantifier(s.Repeat.ONE_OR_MORE)
        return node

    def no_open_edges(self, node: _Node) -> None:
        """Make negations valid without WITHIN: add a required event at the end of SEQ, and drop them from AND."""
        is_last = node.children[-1].can_be_empty() or any(n.kind is s.Not for n in node.children[-1].nodes())
        if node.kind is s.Seq and is_last and any(n.kind is s.Not for n in node.nodes()):
            node.children.append(_Node(None, slot=_Slot(self.one(KINDS), None, self.around(node))))
        if node.kind is s.And:
            node.children = [child for child in node.children if child.kind is not s.Not]

    @staticmethod
    def around(node: _Node) -> tuple[int, ...]:
        return min((slot.negations for slot in node.slots()), key=len)

    def leaf(self, around: tuple[int, ...]) -> _Node:
        self.left -= 1
        class_name = self.one(self.palette)
        quantifier = None
        if self.features.kleene and self.chance(self.features.groups):
            repeat = self.one([s.Repeat.ONE_OR_MORE, s.Repeat.ONE_OR_MORE, s.Repeat.ANY_NUMBER, s.Repeat.EXACTLY])
            quantifier = s.Quantifier(repeat, self.draw(st.integers(1, 3)) if repeat is s.Repeat.EXACTLY else None)
        return _Node(None, slot=_Slot(class_name, quantifier, around))

    def split_off_definitions(self, node: _Node) -> None:
        """Replace some parts of the pattern by definitions."""
        for child in node.children:
            is_open = self.features.own_windows and child.slot is None
            if child.kind is s.Not or child.definition is not None or not self.chance(85 if is_open else 40):
                self.split_off_definitions(child)
                continue
            child.definition = f"S{len(self.definitions) + 1}"
            self.definitions[child.definition] = child
            for slot in child.slots():
                slot.definition = child.definition

    def name_variables(self, root: _Node) -> None:
        slots = list(root.slots())
        uses = [slot.class_name for slot in slots]
        names = self.draw(st.permutations(_NAMES[:14])) + _NAMES[14:]
        for slot, name in zip(slots, names, strict=False):
            slot.named = uses.count(slot.class_name) > 1 or self.chance(60)
            slot.name = name if slot.named else slot.class_name

    # --- the script ---
    def script(self, form: str | None = None, *, ties: bool = False) -> s.Script:
        root = self.pattern(self.features.max_depth, ())
        if root.slot is None and self.features.definitions and self.chance(100 if self.features.own_windows else 40):
            self.split_off_definitions(root)
        self.name_variables(root)
        slots = list(root.slots())
        self.classes = {c: self.row_predicate() for c in _WITH_CLASSES if any(slot.class_name == c for slot in slots)}
        form = form or self.one(
            [
                *["detect"] * 2 * self.features.detection,
                *["aggregate"] * self.features.aggregates,
                *["rank"] * self.features.ranking,
            ]
        )
        is_ranking = form == "rank" and any(not slot.negations for slot in slots)
        definitions = tuple(
            s.Definition(name, self.definition_body(name, node, is_ranking)) for name, node in self.definitions.items()
        )
        statement = self.statement(root, slots, must_have_window=_has_open_edge(root))
        if ties:
            statement = replace(statement, where=self.ties(slots), partition_by=())
        if is_ranking:
            statement = self.ranking(statement, slots, definitions)
        elif form == "aggregate":
            statement = self.aggregation(statement, slots)
        else:
            statement = self.detection(statement, slots)
        return s.Script(definitions, statement)

    def statement(self, root: _Node, slots: list[_Slot], must_have_window: bool) -> s.Statement:
        return s.Statement(
            self.written(root, None),
            classes=tuple(s.ClassDefinition(name, predicate) for name, predicate in self.classes.items()),
            where=self.where(slots, None),
            partition_by=self.keys(15),
            window=self.window() if self.features.windows and (must_have_window or self.chance(75)) else None,
        )

    def definition_body(self, name: str, node: _Node, is_ranking: bool) -> s.Statement:
        slots = list(node.slots())
        preference = None
        if is_ranking and not any(slot.negations for slot in slots) and self.chance(60):
            merge = self.one([None, "SUM", "AVG", "MIN", "MAX", "PRODUCT"])
            preference = s.Preference(tuple(self.objectives(slots, name)), merge)
        return s.Statement(
            self.written(replace(node, definition=None), name),
            where=self.where(slots, name) if self.chance(50) else None,
            partition_by=self.keys(10),
            preference=preference,
            window=self.own_window() if self.features.windows else None,
        )

    def written(self, node: _Node, definition: str | None) -> s.Pattern:
        if node.definition is not None:
            return s.Event(node.definition)
        if node.slot is not None:
            slot = node.slot
            any_row = slot.class_name == "ANY"
            return s.Event(slot.class_name, slot.name if slot.named else None, slot.quantifier, any_row)
        children = tuple(self.written(child, definition) for child in node.children)
        if node.kind is s.Not:
            return s.Not(children[0])
        slots = [slot for slot in node.slots() if slot.definition == definition]
        predicates: tuple[s.Expression, ...] = ()
        if slots and self.chance(20):
            same = s.SameAttribute(self.one(["id", "n", "s"]))
            predicates = (
                same if self.may_share(list(node.slots())) and self.chance(30) else self.piece(slots, definition),
            )
        assert node.kind is not None
        return node.kind(children, predicates)  # type: ignore[arg-type]

    def keys(self, percent: int) -> tuple[s.Name, ...]:
        if not self.chance(percent):
            return ()
        columns = self.one([["id"], ["id"], ["n"], ["s"], ["ID", "n"]])
        return tuple(s.Name((column,)) for column in columns)

    def own_window(self) -> s.Window | None:
        """Draw the window of a definition; a short one is stricter than the statement's window."""
        if not self.features.own_windows:
            return self.window() if self.chance(40) else None
        if self.chance(50):
            return s.Window(s.Duration(self.one([3, 2, 4]), s.Unit.EVENT), self.chance(10))
        return s.Window(s.Duration(self.one([2, 1, 3]), s.Unit.NONE), self.chance(25)) if self.chance(90) else None

    def window(self) -> s.Window:
        if self.chance(30):
            return s.Window(s.Duration(self.one([5, 4, 6, 7, 8, 9, 3, 2, 1]), s.Unit.EVENT), self.chance(5))
        lengths: list[int | Decimal] = [4, 5, 6, 7, 8, 9, 3, 2, 1, Decimal("2.5"), 0]
        length = self.one(lengths)
        return s.Window(s.Duration(length, s.Unit.NONE), bool(length) and self.chance(25))

    # --- results ---
    def detection(self, statement: s.Statement, slots: list[_Slot]) -> s.Statement:
        emit = None
        if any(slot.is_group for slot in slots) and self.chance(30):
            emit = s.EmitMode(s.Emit.EACH)
        elif self.chance(5):
            emit = s.EmitMode(s.Emit.FINAL)
        positive = [slot for slot in slots if not slot.negations]
        items = self.items(positive, set()) if self.chance(50) else ()
        return replace(statement, emit=emit, returns=s.Return(None, items) if items else None)

    def items(self, slots: list[_Slot], taken: set[str]) -> tuple[s.ReturnItem, ...]:
        items: list[s.ReturnItem] = []
        for _ in range(self.draw(st.integers(1, 3))):
            slot = self.one(slots)
            expression: s.Expression = s.Name(slot.path(None))
            name = ".".join(slot.path(None))
            if self.chance(70):
                expression = self.value([slot] if slot.is_group else [v for v in slots if not v.is_group], None)
                name = "_".join(expression.parts) if isinstance(expression, s.Name) else print_expression(expression)
            is_lone_number = isinstance(expression, s.Number | s.Negative)
            alias = f"out {len(items)}" if name in taken or is_lone_number or self.chance(30) else None
            taken.add(alias or name)
            items.append(s.ReturnItem(expression, alias))
        return tuple(items)

    def aggregation(self, statement: s.Statement, slots: list[_Slot]) -> s.Statement:
        positive = [slot for slot in slots if not slot.negations]
        aggregates: list[s.Aggregate] = []
        for number in range(self.draw(st.integers(1, 3))):
            function = self.one(["COUNT", "SUM", "AVG", "MIN", "MAX"])
            column = self.one(["x", "n", "t", *["s"] * (function in ("MIN", "MAX"))])
            argument = None if function == "COUNT" else s.Name((*self.one(positive).path(None), column))
            plain = [a for a in aggregates if (a.function, a.argument, a.alias) == (function, argument, None)]
            aggregates.append(s.Aggregate(function, argument, f"agg{number}" if plain or self.chance(30) else None))
        update = self.update(statement.window, 30)
        emit = s.EmitMode(s.Emit.CHANGES) if update is None and self.chance(25) else None
        return replace(statement, aggregates=tuple(aggregates), group_by=self.group_by(slots), update=update, emit=emit)

    def ranking(self, statement: s.Statement, slots: list[_Slot], definitions: tuple[s.Definition, ...]) -> s.Statement:
        positive = [slot for slot in slots if not slot.negations]
        preference = None
        if not any(d.statement.preference for d in definitions) or self.chance(60):
            merge = self.one([None, "SUM", "AVG", "MIN", "MAX", "PRODUCT"])
            preference = s.Preference(tuple(self.objectives(positive, None)), merge)
        items = self.items(positive, set()) if self.chance(30) else ()
        return replace(
            statement,
            preference=preference,
            group_by=self.group_by(slots),
            update=self.update(statement.window, 50),
            returns=s.Return(self.draw(st.integers(1, 4)), items),
        )

    def objectives(self, slots: list[_Slot], definition: str | None) -> Iterator[s.Objective]:
        for number in range(self.draw(st.integers(1, 2))):
            expression = self.number(self.with_one_group(slots), definition, 2)
            if self.features.linear and self.chance(85):
                expression = self.weighted_sum([slot.path(definition) for slot in slots if not slot.is_group])
            yield s.Objective(self.chance(50), expression, f"goal{number}" if self.chance(50) else None)

    def weighted_sum(self, paths: list[tuple[str, ...]]) -> s.Expression:
        """Draw a sum of most variables, most with weight one, so that there are both ties and distinct scores."""
        total: s.Expression | None = None
        for path in paths:
            term: s.Expression = self.column(path, "x", "n", "n", "t")
            if self.chance(20):
                weight = self.one([s.Number(2), s.Number(Decimal("0.1")), s.Number(3)])
                term = s.Arithmetic(self.one("*/"), term, weight)
            if total is None or self.chance(85):
                total = term if total is None else s.Arithmetic(self.one("+++-"), total, term)
        return total or s.Number(1)

    def group_by(self, slots: list[_Slot]) -> tuple[s.Name, ...]:
        return self.keys(40) if self.may_share(slots) else ()

    def update(self, window: s.Window | None, percent: int) -> s.Duration | None:
        if window is None or not self.chance(percent):
            return None
        return s.Duration(self.draw(st.integers(1, 5)), window.length.unit)

    # --- predicates ---
    def ties(self, slots: list[_Slot]) -> s.Expression | None:
        """Return `g.id = v.id` for a group and most other variables that every engine can compare with it."""
        groups = [slot for slot in slots if slot.is_group]
        if not groups:
            return s.SameAttribute("id")
        group = self.one(groups)
        has_size = group.quantifier is not None and group.quantifier.repeat is s.Repeat.EXACTLY
        others = [v for v in slots if v is not group and _see_each_other(v, group) and not v.is_group]
        others = [v for v in others if has_size or v.negations == group.negations]
        names = [s.Name((*slot.path(None), "id")) for slot in (group, *others)]
        pieces = tuple(s.Comparison((names[0], name), ("=",)) for name in names[1:] if self.chance(80))
        return s.AllOf(pieces) if len(pieces) > 1 else pieces[0] if pieces else None

    def where(self, slots: list[_Slot], definition: str | None) -> s.Expression | None:
        pieces = [self.piece(slots, definition) for _ in range(self.one([0, 1, 1, 0, 1, 2, 3]))]
        if self.may_share(slots) and self.chance(25):
            pieces.insert(0, s.SameAttribute(self.one(["id", "id", "n", "s"])))
        if len(pieces) < 2:
            return pieces[0] if pieces else None
        return s.AllOf(tuple(pieces))

    def may_share(self, slots: list[_Slot]) -> bool:
        """Return True if `[attr]` compares no pair that may be unsupported."""
        groups = [slot for slot in slots if slot.is_group]
        few = len(groups) <= 1 and not (groups and any(slot.negations for slot in slots))
        return few or self.features.kleene_pairs

    def visible(self, slots: list[_Slot]) -> list[_Slot]:
        """Return a variable and those that a predicate may use together with it."""
        focus = self.one(slots)
        beside = [v for v in slots if v is not focus and _see_each_other(v, focus)]
        if not self.features.kleene_pairs:
            if focus.is_group:
                beside = [] if focus.negations else [v for v in beside if not v.is_group and not v.negations]
            elif focus.negations:
                beside = [v for v in beside if not v.is_group]
            else:
                beside = self.with_one_group(beside) if not any(v.negations for v in beside) else beside
                beside = [v for v in beside if not (v.is_group and v.negations)]
        chain = [focus]
        for slot in beside:
            if all(_see_each_other(slot, other) for other in chain):
                chain.append(slot)
        if not self.features.kleene_pairs and any(v.is_group for v in chain):
            chain = [v for v in chain if not v.negations or v is focus] if not focus.negations else chain
        return chain

    def with_one_group(self, slots: list[_Slot]) -> list[_Slot]:
        groups = [slot for slot in slots if slot.is_group]
        kept = self.one(groups) if groups else None
        return [slot for slot in slots if not slot.is_group or slot is kept]

    def piece(self, slots: list[_Slot], definition: str | None) -> s.Expression:
        """Draw a predicate other than a bare `[attr]` over variables that are visible to each other."""
        slots = self.visible(slots)
        groups = [slot for slot in slots if slot.is_group]
        if groups and self.chance(30):
            return self.group_predicate(self.one(groups), definition)
        single = [slot.path(definition) for slot in slots]
        forms: list[Callable[[list[tuple[str, ...]]], s.Expression]] = [self.local, self.local]
        if len(single) > 1:
            forms += [self.pair, self.pair, self.pair, self.chain, self.general, self.either]
        return self.one(forms)(single)

    def column(self, path: tuple[str, ...], *columns: str) -> s.Name:
        return s.Name((*path, self.one(columns)))

    def local(self, paths: list[tuple[str, ...]]) -> s.Expression:
        return self.test(lambda *columns: self.column(paths[0], *columns))

    def test(self, column: Callable[..., s.Name]) -> s.Expression:
        """Draw a predicate on one row, whose columns are named by `column`."""
        form = self.one(["compare", "compare", "compare", "text", "in", "between", "null", "like", "not", "or", "sum"])
        match form:
            case "compare":
                return self.comparison(column("x", "n", "id", "t"), self.small_number())
            case "text":
                return self.comparison(self.cased(column("s", "kind")), self.text())
            case "in" if self.chance(50):
                items = (self.small_number(), self.small_number(), *[s.Null()] * self.chance(10))
                return s.InList(column("id", "n", "x"), items, self.chance(30))
            case "in":
                return s.InList(column("kind", "s"), (self.text(), self.text()), self.chance(30))
            case "between":
                low, high = s.Number(self.one([0, 1])), s.Number(self.one([2, 3]))
                return s.Between(column("x", "n", "t"), low, high, self.chance(25))
            case "null":
                return s.IsNull(column("x", "id", "s"), self.chance(80))
            case "like":
                return s.Like(column("s", "kind"), self.one(["a%", "_", "%b", "%", "A"]), self.chance(25))
            case "not":
                return s.NotExpression(self.test(column))
            case "or":
                return s.AnyOf((self.test(column), self.test(column)))
            case _:
                total = s.Arithmetic(self.one("+-"), column("x", "n"), column("n", "t"))
                return self.comparison(total, self.small_number())

    def row_predicate(self) -> s.Expression:
        """Draw the predicate of a WITH class, over bare column names."""
        return self.test(lambda *columns: s.Name((self.one(columns),)))

    def comparison(self, left: s.Expression, right: s.Expression) -> s.Comparison:
        return s.Comparison((left, right), (self.one(["<=", "!=", ">=", "<=", "!=", ">=", "<", ">", "="]),))

    def pair(self, paths: list[tuple[str, ...]]) -> s.Expression:
        one, other = self.draw(st.permutations(paths))[:2]
        if self.chance(40):
            column = self.one(["id", "id", "n", "s", "ID", "kind", "x"])
            return s.Comparison((s.Name((*one, column)), s.Name((*other, column))), ("=",))
        if self.chance(20):
            return self.comparison(self.cased(self.column(one, "s", "kind")), self.cased(self.column(other, "s")))
        left = self.shifted(self.column(one, "x", "n", "t", "time", "id"))
        return self.comparison(left, self.shifted(self.column(other, "x", "n", "t", "id")))

    def chain(self, paths: list[tuple[str, ...]]) -> s.Expression:
        """Draw a chain such as `a.x < b.x <= c.x`, with a constant if there are only two variables."""
        column = self.one(["id", "n", "x", "t"])
        operands: list[s.Expression] = [s.Name((*path, column)) for path in paths[:4]]
        if len(operands) < 3 or self.chance(20):
            operands.append(self.small_number())
        ops = tuple(self.one(["<=", "!=", ">=", "=", "<"]) for _ in pairwise(operands))
        return s.Comparison(tuple(operands), ops)

    def general(self, paths: list[tuple[str, ...]]) -> s.Expression:
        left = self.arithmetic([self.column(path, "x", "n", "t") for path in paths[:3]], 2)
        return self.comparison(left, self.small_number())

    def either(self, paths: list[tuple[str, ...]]) -> s.Expression:
        inner = [self.pair(paths), self.one([self.pair, self.local])(paths)]
        joined = s.AllOf(tuple(inner)) if self.chance(50) else s.AnyOf(tuple(inner))
        return s.NotExpression(joined) if isinstance(joined, s.AllOf) or self.chance(25) else joined

    def group_predicate(self, slot: _Slot, definition: str | None) -> s.Expression:
        return self.comparison(self.group_value(slot, definition), self.small_number())

    def group_value(self, slot: _Slot, definition: str | None) -> s.Call:
        path = slot.path(definition)
        function = self.one(["COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST"])
        return s.Call(function, (s.Name(path) if function == "COUNT" else self.column(path, "x", "n"),))

    # --- values ---
    def value(self, slots: list[_Slot], definition: str | None) -> s.Expression:
        """Draw any value that RETURN accepts: a number, a string, or a predicate."""
        if any(slot.is_group for slot in slots) or self.chance(60):
            return self.number(slots, definition, 2)
        path = self.one(slots).path(definition)
        return self.one(
            [self.column(path, "s", "kind", "id", "seq"), self.cased(self.column(path, "s")), self.local([path])]
        )

    def number(self, slots: list[_Slot], definition: str | None, depth: int) -> s.Expression:
        atoms: list[s.Expression] = [
            self.group_value(slot, definition) if slot.is_group else self.column(slot.path(definition), "x", "n", "t")
            for slot in slots
        ]
        return self.arithmetic(atoms, depth)

    def arithmetic(self, atoms: Sequence[s.Expression], depth: int) -> s.Expression:
        if depth == 0 or self.chance(30):
            return self.one([*atoms, *atoms, self.small_number()])
        left, right = self.arithmetic(atoms, depth - 1), self.arithmetic(atoms, depth - 1)
        form = self.one(["+", "+", "-", "-", "*", "/", "%", "negative", "ABS", "LEAST", "GREATEST", "COALESCE", "SQRT"])
        match form:
            case "negative":
                return s.Negative(left)
            case "ABS":
                return s.Call("ABS", (left,))
            case "SQRT":
                return s.Call("SQRT", (s.Call("ABS", (left,)),))
            case "LEAST" | "GREATEST" | "COALESCE":
                # Small numbers only: types, not just values, determine whether a large integer becomes a double.
                return s.Call(form, (self.one(atoms), self.one([*atoms, s.Number(self.one([0, 1, 2, 3]))])))
            case _:
                return s.Arithmetic(form, left, right)

    def shifted(self, column: s.Name) -> s.Expression:
        if not self.chance(35):
            return column
        return s.Arithmetic(self.one("+-"), column, self.one([s.Number(1), s.Number(Decimal("0.5"))]))

    def cased(self, column: s.Name) -> s.Expression:
        return s.Call(self.one(["LOWER", "UPPER"]), (column,)) if self.chance(20) else column

    def small_number(self) -> s.Expression:
        numbers: list[int | Decimal] = [1, 2, 1, 2, 0, 3, Decimal("1.5"), Decimal("0.5"), BEYOND_DOUBLES + 1]
        number = s.Number(self.one(numbers))
        return s.Negative(number) if self.chance(10) else number

    def text(self) -> s.String:
        return s.String(self.one(["a", "b", "a", "b", "A", "ab", "", "it's"]))


def _see_each_other(one: _Slot, other: _Slot) -> bool:
    """Return True if one variable is inside all negations around the other."""
    shorter, longer = sorted((one.negations, other.negations), key=len)
    return longer[: len(shorter)] == shorter


def _has_open_edge(root: _Node) -> bool:
    """Return True if a negation may be the last of its sequence, which requires WITHIN. May return True needlessly."""
    for node in root.nodes():
        if node.kind is s.And and any(child.kind is s.Not for child in node.children):
            return True
        for index, child in enumerate(node.children):
            after = node.children[index + 1 :]
            if node.kind is s.Seq and child.kind is s.Not and all(other.can_be_empty() for other in after):
                return True
    return False
