"""The papers' figures that measure something: what each finds, in words of ours, and by which rule a run agrees."""

from __future__ import annotations

from benchmarks.findings import (
    exactly_three_is_least,
    findings,
    flat,
    gains,
    gains_less,
    gains_more,
    grows,
    later_take_longer,
    least_is,
    most_is,
    shrinks,
    winners_differ,
)

CPR = "*CPR: Complex Pattern Ranking*"
AGGREGATION = "*Online Aggregation of Stream Sequence Patterns*"
NESTED = "*Processing Nested Complex Sequence Pattern Queries*"
CONDENSED = "*Sequence Event Detection through Condensed Composition*"
KLEENE = "*Kleene Operators on Binary Tree-based Directed Graph*"

ALONE, SHARED = "one by one", "run_many"
BUILT, COUNTED = "detect", "two-stack"
D_YEN, K_DSSP = "D-Yen", "k-DSSP"
ROUND_ROBIN, WABS = "round-robin", "wabs"
STATIC, DYNAMIC = "nTMM", "dTMM"
OFF, ON = "condense=off", "condense=on"

FINDINGS = (
    *findings(
        AGGREGATION,
        "aggregation",
        ("figure 12a", "the time to count hardly depends on the pattern's length", "figure 12", flat(1.5)),
        ("figure 12b", "counters need less memory than matches", "memory of figure 12", gains(1, BUILT, COUNTED)),
        ("figure 13a", "the time to count grows with the window", "figure 13", grows()),
        ("figure 13b", "the memory of counters grows with the window", "memory of figure 13", grows()),
        ("figure 14a", "no slowdown up to length 10", "figure 14a", flat(1.5)),
        ("figure 14b", "a negation costs almost nothing", "figure 14b", flat(1.2)),
        (
            "figure 15",
            "building matches takes 100 times as long as shared counting",
            "figure 15",
            gains(100, BUILT, "chop"),
        ),
        ("figure 16a", "sharing a prefix halves the time of 2 to 6 queries", "figure 16a", gains(1.8, ALONE, SHARED)),
        ("figure 16b", "the longer the common prefix, the greater the gain", "figure 16b", gains_more(ALONE, SHARED)),
        ("figure 16c", "chop-connect gains more the longer the common part", "figure 16c", gains_more(ALONE, SHARED)),
        ("figure 16d", "chop-connect gains more with more queries", "figure 16d", gains_more(ALONE, SHARED)),
    ),
    *findings(
        NESTED,
        "nested",
        ("figure 6a", "more negated sub-queries take longer", "number of sub-queries", later_take_longer("q1", "q3")),
        (
            "figure 6b",
            "longer negated sub-queries take longer",
            "length of the sub-query",
            later_take_longer("q4", "q6"),
        ),
        ("figure 6c", "deeper nesting takes longer", "nesting level", later_take_longer("q7", "q9")),
        ("figure 8", "caching the inner sub-query pays", "q10", gains(1, "inner again", "inner cached")),
    ),
    *findings(
        CONDENSED,
        "condensed",
        ("figure 8a", "condensing is faster at every window", "window", gains(1, OFF, ON)),
        ("figure 8b", "condensing is faster for every number of classes", "classes", gains(1, OFF, ON)),
        ("figure 8c", "on quotes condensing gains more as the window grows", "Query 3", gains_more(OFF, ON)),
    ),
    *findings(
        KLEENE,
        "shapes",
        ("figure 7a", "the fastest shape depends on the group's place", "figure 7", winners_differ),
        (
            "figure 7b",
            "with the group last, the bushy shape needs most memory",
            "memory of figure 7: A; B; C; D+",
            most_is("plan=bushy"),
        ),
        ("figure 8a", "the fastest shape depends on the populations", "figure 8", winners_differ),
        (
            "figure 8b",
            "with the group last, the inner shape needs least memory",
            "memory of figure 8: D; C; B; A+",
            least_is("plan=inner"),
        ),
        ("figure 9a", "the shape that gains from a predicate depends on its place", "figure 9", winners_differ),
        (
            "figure 9b",
            "a sharper predicate on the first pair saves memory from the left",
            "memory of figure 9: A; B; C; D+, A.x",
            shrinks("plan=left"),
        ),
        ("figure 10a", "longer windows take longer", "figure 10: A; B; C; D+", grows()),
        ("figure 10b", "longer windows need more memory", "memory of figure 10: A; B; C; D+", grows()),
        (
            "figure 11a",
            "exactly three events are faster than + and *, wherever they stand",
            "figure 11",
            exactly_three_is_least("plan=right"),
        ),
        (
            "figure 11b",
            "in the last place exactly three need less memory than + and *",
            "memory of figure 11, 4",
            exactly_three_is_least("plan=right"),
        ),
    ),
    *findings(
        CPR,
        "ranking",
        (
            "figure 4.1",
            "Yen's algorithm is faster if it keeps what a window move leaves",
            "figure 4.3b",
            gains(1, "Yen", D_YEN),
        ),
        (
            "figure 4.2",
            "best paths are almost 1,000 times as fast as Yen's",
            "figure 4.2",
            gains(500, D_YEN, "best paths"),
        ),
        (
            "figure 4.2",
            "best paths are almost 1,000 times as fast as enumerating all matches",
            "window 5,000, k 100, whole engine",
            gains(500, "enumerate", "auto"),
        ),
        ("figure 4.3a", "the gain over Yen's grows with k", "figure 4.3a", gains_more(D_YEN, K_DSSP)),
        ("figure 4.3b", "the gain over Yen's grows with the window", "figure 4.3b", gains_more(D_YEN, K_DSSP)),
        ("figure 4.3c", "the gain over Yen's grows with the length", "figure 4.3c", gains_more(D_YEN, K_DSSP)),
        ("figure 4.3d", "the gain over Yen's falls with the step", "figure 4.3d", gains_less(D_YEN, K_DSSP)),
        (
            "figure 4.3e",
            "the gain over Yen's grows with the frequency of the last class",
            "figure 4.3e",
            gains_more(D_YEN, K_DSSP),
        ),
    ),
    *findings(
        CPR,
        "merging",
        ("figure 4.4", "WABS is the fastest schedule for every k", "figure 4.4", least_is(WABS)),
        (
            "figure 4.5a",
            "WABS gains more where fewer sequences can be joined",
            "figure 4.5a",
            gains_more(ROUND_ROBIN, WABS),
        ),
        (
            "figure 4.5b",
            "WABS gains more where one must come after the other",
            "figure 4.5b",
            gains_more(ROUND_ROBIN, WABS),
        ),
        ("figure 4.5c", "WABS gains most where merging takes the least", "figure 4.5c", gains_more(ROUND_ROBIN, WABS)),
        ("figure 4.5d", "WABS gains more where lengths differ", "figure 4.5d", gains_more(ROUND_ROBIN, WABS)),
        (
            "figure 4.6",
            "WABS gains more of three sequences where one must come last",
            "figure 4.6",
            gains_more(ROUND_ROBIN, WABS),
        ),
        ("figures 4.4 to 4.6", "WABS reads less than round robin", "accesses of figure", gains(1, ROUND_ROBIN, WABS)),
        ("figure 4.9a", "keeping joins gains more with smaller steps", "figure 4.9a", gains_more(STATIC, DYNAMIC)),
        ("figure 4.9b", "keeping joins gains more with larger windows", "figure 4.9b", gains_more(STATIC, DYNAMIC)),
        ("figure 4.9c", "keeping joins gains more with a larger k", "figure 4.9c", gains_more(STATIC, DYNAMIC)),
        (
            "figure 4.9d",
            "keeping joins gains more where one must come after the other",
            "figure 4.9d",
            gains_more(STATIC, DYNAMIC),
        ),
        (
            "figure 4.10a",
            "keeping joins pays for scores that are no sums",
            "figure 4.10: S7; S8",
            gains(1.2, STATIC, DYNAMIC),
        ),
        (
            "figure 4.10b",
            "and gains more where one must come after the other",
            "figure 4.10",
            gains_more(STATIC, DYNAMIC),
        ),
    ),
    *findings(
        CPR,
        "schedules",
        (
            "figure 4.7a",
            "WABS gains more the more the costs of two queues differ",
            "figure 4.7a",
            gains_more(ROUND_ROBIN, WABS),
        ),
        (
            "figure 4.7b",
            "WABS gains more the more the costs of three queues differ",
            "figure 4.7b",
            gains_more(ROUND_ROBIN, WABS),
        ),
        ("figure 4.8a", "WABS gains more with a larger k", "figure 4.8a", gains_more(ROUND_ROBIN, WABS)),
        ("figure 4.8b", "WABS gains most where merging takes the least", "figure 4.8b", gains_more(ROUND_ROBIN, WABS)),
        (
            "figure 4.8c",
            "WABS gains more where fewer entries can be joined",
            "figure 4.8c",
            gains_more(ROUND_ROBIN, WABS),
        ),
        (
            "figure 4.8d",
            "WABS gains more for normal scores than for Zipf's",
            "figure 4.8d",
            gains_more(ROUND_ROBIN, WABS),
        ),
    ),
)
