"""Draw the algebraic plan of a pattern as written: operators, intervals, where predicates run.

The operators are those of "Processing Nested Complex Sequence Pattern Queries over Event Streams" (sections 2.3 and 3):
WinSeq, WinAnd, WinOr, and `!` for what must not occur. The tree is the one that was written; what is said about a node
is read from the plan's steps and negations, so that it tells what will run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from streamsift.language.printer import print_quantifier
from streamsift.logical import bound as b
from streamsift.logical.describe import describe_expression
from streamsift.physical.explain.words import describe_limit, describe_test, predicates_of
from streamsift.physical.plan import DetectPlan, Edge, KleeneGroups, Limit, Negation, Step, ordered_steps

MADE_ALIKE = "its groups are made as those of the pattern"
Operator = b.Sequence | b.Conjunction | b.Disjunction
Chain = tuple[Step, ...]  # all steps that are bound where something is decided, those of the patterns around it first
Path = tuple[int, ...]  # a node by the numbers of the children that lead to it

_NAMES = {b.Sequence: "WinSeq", b.Conjunction: "WinAnd", b.Disjunction: "WinOr"}
_WINDOW_EDGES = {Edge.WINDOW_START: "window start", Edge.WINDOW_END: "window end", Edge.MATCH_END: "match end"}


def describe_algebra(pattern: b.Node, plan: DetectPlan) -> Iterator[str]:
    """The tree, one node a line, with lines under it for what is decided there."""
    tree = _Tree(pattern, plan)
    root = tree.draw(pattern, (), b.ROOT_SCOPE)
    return _lines(replace(root, details=(*root.details, *tree.of_groups(b.ROOT_SCOPE))), "", "")


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A node ready to be drawn."""

    head: str
    details: tuple[str, ...] = ()
    children: tuple[_Drawn, ...] = ()


def _lines(node: _Drawn, first: str, rest: str) -> Iterator[str]:
    yield first + node.head
    for detail in node.details:
        yield f"{rest}{'│' if node.children else ' '}  {detail}"
    for number, child in enumerate(node.children, start=1):
        is_last = number == len(node.children)
        yield from _lines(child, rest + ("└─ " if is_last else "├─ "), rest + ("   " if is_last else "│  "))


@dataclass(frozen=True, slots=True)
class _Negation:
    """A negated sub-pattern as one form of the plan has it."""

    lower: Limit
    upper: Limit
    chain: Chain  # around it
    decided: str  # once this is so
    test: str


class _Tree:
    """The pattern beside what the plan says of it.

    OR is planned once for each choice, so a variable has a step, and a negation a place, in several forms.
    """

    def __init__(self, pattern: b.Node, plan: DetectPlan) -> None:
        # With Kleene variables, the query that knows their elements: those are called as the variable is.
        self.pattern, self.query = pattern, plan.alternatives[0].query
        self.variables = self.query.variables
        numbers = {variable.name: variable.index for variable in plan.query.variables}
        self.owners = {variable.index: numbers.get(variable.name, variable.index) for variable in self.variables}
        self.kept = {_variables(node) for node in plan.query.pattern.walk() if isinstance(node, Operator)}
        self.paths = dict(_leaf_paths(pattern, ()))
        self.forms: dict[int, list[tuple[Chain, Chain]]] = {}  # by scope: the scope's own steps, and the whole chain
        self.negations: dict[int, list[_Negation]] = {}  # by scope
        self.groups: dict[int, list[KleeneGroups]] = {}  # by scope
        for alternative in plan.alternatives:
            if alternative.groups is None:
                self._collect(b.ROOT_SCOPE, alternative.steps, alternative.steps)
            else:
                self._collect_groups(b.ROOT_SCOPE, alternative.steps, alternative.groups)
            self._collect_negations(alternative.negations, alternative.steps)

    def _collect(self, scope: int, steps: Chain, chain: Chain) -> None:
        self.forms.setdefault(scope, []).append((steps, chain))

    def _collect_negations(self, negations: tuple[Negation, ...], chain: Chain, decided: str = "") -> None:
        for negation in negations:
            inner = self.variables[negation.steps[0].variable].scope
            when = decided or f"{self._name(chain[negation.ready].variable)} is bound"
            found = _Negation(negation.lower, negation.upper, chain, when, describe_test(negation))
            self.negations.setdefault(inner, []).append(found)
            self._collect(inner, negation.steps, (*chain, *negation.steps))
            self._collect_negations(negation.negations, (*chain, *negation.steps))

    def _collect_groups(self, scope: int, steps: Chain, groups: KleeneGroups) -> None:
        """Single events, `[n]` groups and growing ones, each after what comes before it in one order of AND."""
        self.groups.setdefault(scope, []).append(groups)
        for form in ordered_steps(steps, groups):
            self._collect(scope, form, groups.steps)
        for decided in groups.decided:
            self._collect_negations(decided.negations, groups.steps, "all groups are made")
            for negation in decided.group_negations:
                inner = self.variables[next(negation.groups.own_steps()).variable].scope
                found = _Negation(negation.lower, negation.upper, groups.steps, "all groups are made", MADE_ALIKE)
                self.negations.setdefault(inner, []).append(found)
                self._collect_groups(inner, (), negation.groups)

    def of_groups(self, scope: int) -> Iterator[str]:
        """What is asked of groups as a whole."""
        found = self.groups.get(scope, [])
        filters = (describe_expression(e, self.variables) for groups in found for e in groups.filters)
        yield from dict.fromkeys(f"check   {text}, of whole groups" for text in filters)
        for columns in dict.fromkeys(tuple(c for _, c in key.members) for groups in found for key in groups.keys):
            yield f"one {columns[0].name} in {', '.join(self._name(column.variable) for column in columns)}"

    def _name(self, variable: int) -> str:
        return self.variables[variable].name

    # --- nodes ---
    def draw(self, node: b.Node, path: Path, scope: int) -> _Drawn:
        match node:
            case b.Leaf():
                return _Drawn(_leaf(self.variables[node.variable]), tuple(self._predicates(node.variable, scope)))
            case b.Negated():
                child = self.draw(node.child, (*path, 0), node.scope)
                name = child.head if isinstance(node.child, b.Leaf) else child.head.partition(":")[0]
                details = (*self._decision(node.scope, path), *child.details, *self.of_groups(node.scope))
                return _Drawn(f"! {name}: {'; '.join(self._limits(node.scope))}", details, child.children)
            case b.SubPattern():
                window = f": within {node.window.text}" if node.window else ""
                return _Drawn(f"definition {node.name}{window}", (), (self.draw(node.child, (*path, 0), scope),))
            case b.Sequence() | b.Conjunction() | b.Disjunction():
                children = (self.draw(child, (*path, i), scope) for i, child in enumerate(node.children))
                interval = self._interval(node, scope) if path else self._window()
                return _Drawn(f"{_NAMES[type(node)]}: {interval}", tuple(self._operator(node)), tuple(children))

    def _window(self) -> str:
        return f"within {self.query.window.text}" if self.query.window else "no window"

    def _operator(self, node: Operator) -> Iterator[str]:
        if isinstance(node, b.Disjunction):
            yield "each operand is found on its own"
        if _variables(node) not in self.kept:
            yield "merged into the operator around it"

    # --- intervals ---
    def _interval(self, node: Operator, scope: int) -> str:
        """Between which events a positive operator must lie: what its own steps come after, what comes after them."""
        own = set(node.leaves())
        lower, upper = [], []
        for steps, chain in self.forms[scope]:
            if own.isdisjoint(self.owners[step.variable] for step in steps):
                continue  # another choice was taken
            pairs = [
                (self.owners[chain[earlier].variable], self.owners[step.variable])
                for step in steps
                for earlier in step.after
            ]
            lower.append(self._beside("after", {e for e, later in pairs if later in own and e not in own}))
            upper.append(self._beside("before", {later for e, later in pairs if e in own and later not in own}))
        window = "in the window" if self.query.window else ""
        edges = (window, window) if scope == b.ROOT_SCOPE else self._limits(scope)
        ends = (_either(text or edge for text in texts) for texts, edge in zip((lower, upper), edges, strict=True))
        return "; ".join(dict.fromkeys(end for end in ends if end)) or "anywhere"

    def _beside(self, word: str, variables: set[int]) -> str:
        return f"{word} {', '.join(self.variables[v].name for v in sorted(variables))}" if variables else ""

    def _limits(self, scope: int) -> tuple[str, str]:
        """The interval of a negation."""
        found = self.negations[scope]
        lower = _either(describe_limit(self.query, each.lower, each.chain) for each in found)
        return lower, _either(describe_limit(self.query, each.upper, each.chain) for each in found)

    def _decision(self, scope: int, path: Path) -> Iterator[str]:
        """What bounds a negation, and when and how it is decided."""
        found = self.negations[scope]
        limits = [(limit, each.chain) for each in found for limit in (each.lower, each.upper)]
        sources = dict.fromkeys(self._source(limit, chain, path) for limit, chain in limits)
        marks = ["delayed constraint"] if any(source.startswith("adjacent") for source in sources) else []
        is_postponed = any(limit.edge is Edge.WINDOW_END for limit, _ in limits)
        yield f"bound by {', '.join(sources)}" + "".join(f"; {mark}" for mark in marks + ["postponed"] * is_postponed)
        passed = " and time has passed start + w" if is_postponed else ""
        decided = _either(each.decided for each in found).replace(" is bound or ", " or ")
        yield f"decided once {decided}{passed}; {_either(each.test for each in found)}"

    def _source(self, limit: Limit, chain: Chain, path: Path) -> str:
        """Section 3.3: events of a query around it are known first; those of a sub-query beside it are not."""
        if limit.edge is Edge.WINDOW_START and self.query.window is None:
            return "beginning of the stream"
        if not limit.steps:
            return _WINDOW_EDGES[limit.edge]
        beside = self.paths[self.owners[chain[limit.steps[0]].variable]]
        shared = next(i for i, (ours, theirs) in enumerate(zip(path, beside, strict=False)) if ours != theirs)
        component = _at(self.pattern, beside[: shared + 1])
        if isinstance(component, b.Leaf):
            return "upper query"
        names = ", ".join(self.variables[v].name for v in component.leaves())
        kind = _NAMES[type(component)] if isinstance(component, Operator) else "query"
        return f"adjacent {kind}({names})"

    # --- predicates ---
    def _predicates(self, variable: int, scope: int) -> Iterator[str]:
        """Every predicate that is evaluated when this variable is bound, and how."""
        forms: dict[frozenset[int], dict[str, frozenset[int]]] = {}
        for steps, chain in self.forms[scope]:
            for step in steps:
                if self.owners[step.variable] == variable:
                    taken = frozenset(self.owners[s.variable] for s in (*chain, *steps))
                    forms[taken] = {**forms.get(taken, {}), **dict(self._evaluated(step))}
        for line in dict.fromkeys(line for lines in forms.values() for line in lines):
            mentioned = next(lines[line] for lines in forms.values() if line in lines)
            yield line + self._condition([taken for taken, lines in forms.items() if line in lines], forms, mentioned)

    def _evaluated(self, step: Step) -> Iterator[tuple[str, frozenset[int]]]:
        """Yield a line for each predicate, with the variables it mentions."""
        own = self.variables[step.variable].scope
        for word, text, mentioned in predicates_of(step, self.query):
            is_correlated = any(self.variables[v].scope != own for v in mentioned)
            yield f"{word.replace('filter', 'local'):<7} {text}{'  (correlated)' * is_correlated}", mentioned

    def _condition(
        self, present: list[frozenset[int]], forms: Collection[frozenset[int]], mentioned: frozenset[int]
    ) -> str:
        """At which choices a predicate is evaluated here, unless at all or at those that it names itself."""
        everywhere = frozenset.intersection(*forms)
        common = frozenset.intersection(*present) - everywhere
        if [taken for taken in forms if taken >= common & mentioned] == present:
            return ""
        is_enough = [taken for taken in forms if taken >= common] == present
        choices = [common] if is_enough else [taken - everywhere for taken in present]
        return f"  (with {_either(', '.join(self.variables[v].name for v in sorted(c)) for c in choices)})"


# --- patterns ------------------------------------------------------------------------------------------------------


def _leaf(variable: b.Variable) -> str:
    quantifier = print_quantifier(variable.quantifier) if variable.quantifier else ""
    class_name = variable.event_class.name + quantifier
    return class_name if variable.name == class_name else f"{class_name} {variable.name}"


def _at(node: b.Node, path: Path) -> b.Node:
    for number in path:
        node = node.children[number]
    return node


def _leaf_paths(node: b.Node, path: Path) -> Iterator[tuple[int, Path]]:
    if isinstance(node, b.Leaf):
        yield node.variable, path
    for number, child in enumerate(node.children):
        yield from _leaf_paths(child, (*path, number))


def _variables(node: b.Node) -> tuple[type[b.Node], frozenset[int]]:
    """An operator as the optimiser knows it again: its kind and all variables inside it."""
    return type(node), frozenset(variable for variable, _ in _leaf_paths(node, ()))


def _either(texts: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(texts))
