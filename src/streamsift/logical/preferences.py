"""Classify an objective as linear, monotone or other, which determines the ranking strategies that apply."""

from __future__ import annotations

from streamsift.logical.bound import NUMERIC, Column, Constant, Expr, Kind, Operation, PreferenceClass


def preference_class(expression: Expr) -> PreferenceClass:
    if _linear(expression):
        return PreferenceClass.LINEAR
    return PreferenceClass.MONOTONE if _monotone(expression) else PreferenceClass.OTHER


def _linear(expression: Expr) -> bool:
    """Return True for a sum of attributes with constant weights."""
    match expression:
        case Column():
            return expression.kind in NUMERIC or expression.kind in (Kind.TIMESTAMP, Kind.DATE, Kind.DURATION)
        case Constant():
            return True
        case Operation(op="+" | "-" | "negative"):
            return all(_linear(o) for o in expression.operands)
        case Operation(op="*", operands=(left, right)):
            return (isinstance(left, Constant) and _linear(right)) or (isinstance(right, Constant) and _linear(left))
        case Operation(op="/", operands=(left, Constant())):
            return _linear(left)
        case _:
            return False


def _monotone(expression: Expr) -> bool:
    """Return True if the value is monotone in each variable's component while the other components are fixed.

    Any sub-expression over a single variable is a component.
    """
    if len(expression.variables) <= 1:
        return True
    match expression:
        case Operation(op="+" | "-" | "negative" | "sqrt" | "log" | "exp" | "least" | "greatest"):
            return _operands_are_disjoint(expression) and all(_monotone(o) for o in expression.operands)
        case Operation(op="*", operands=operands):
            is_monotone = _operands_are_disjoint(expression) and all(_monotone(o) for o in operands)
            return is_monotone and (
                any(isinstance(o, Constant) for o in operands) or all(not_negative(o) for o in operands)
            )
        case Operation(op="/", operands=(left, Constant())):
            return _monotone(left)
        case Operation(op="^", operands=(left, Constant(value=int() | float() as power))):
            return _monotone(left) and (not_negative(left) or power % 2 == 1)
        case _:
            return False


def _operands_are_disjoint(expression: Operation) -> bool:
    """Return True if no variable occurs in two operands, which could make it increase one and decrease the other."""
    return sum(len(operand.variables) for operand in expression.operands) == len(expression.variables)


def not_negative(expression: Expr) -> bool:
    """Return True if the expression cannot be negative, as far as its operators show."""
    match expression:
        case Constant(value=int() | float() as value):
            return value >= 0
        case Operation(op="abs" | "sqrt" | "exp"):
            return True
        case Operation(op="^", operands=(_, Constant(value=int() as power))):
            return power % 2 == 0
        case Operation(op="+" | "*" | "least" | "greatest"):
            return all(not_negative(o) for o in expression.operands)
        case _:
            return False
