"""List every query of the five papers in full."""

from __future__ import annotations

CARD_PURCHASES = """
SEQ S1 = A;B;C
  WITH A = (brand = 'A'), B = (brand = 'B'), C = (brand = 'C')
  WITHIN 10 hours
  WHERE A.CCID = B.CCID AND B.CCID = C.CCID
  PREF MAX[exp = A.exp + B.exp + C.exp] AND MIN[t = C.t - A.t]
SEQ S2 = D;E
  WITH D = (brand = 'D'), E = (brand = 'E')
  WITHIN 8 hours
  WHERE D.CCID = E.CCID
  PREF MAX[exp = D.exp + E.exp]
PATTERN S1 & S2
  WITHIN 10 hours UPDATE 5 hours
  WHERE S1.A.CCID = S2.D.CCID
  PREF MAX[S1.exp + S2.exp] AND MIN[S1.t]
  RETURN 10
"""


def _sensor_patterns() -> list[str]:
    chains = "EG;EH;EN EG;EH;EO EG;EH;EJ EG;EH EG;EH;EJ;EI EK;EL;EM EI;EN;EO EJ;EK;EL;EM".split()
    window = "WITHIN 50 EVENTS UPDATE 20 EVENTS"
    single = [
        f"PATTERN {chain} WHERE [moteid] {window} PREF MAX[{' + '.join(f'{c}.d' for c in chain.split(';'))}] RETURN 5"
        for chain in chains
    ]
    definitions = (
        "SEQ S7 = EG;EH PREF MAX[d = EG.d + EH.d] SEQ S8 = EK;EL;EM PREF MAX[d = EK.d + EL.d + EM.d] "
        "SEQ S9 = EI;EN;EO PREF MAX[d = EI.d + EN.d + EO.d] "
    )
    seven_eight = definitions[: definitions.index("SEQ S9")]
    join = "WHERE S7.EG.moteid = S8.EK.moteid"
    combined = [
        f"{text}PATTERN {pattern} {join} {window} PREF {objectives} MERGE {merge} RETURN 10"
        for text, pattern, objectives in (
            (seven_eight, "[S7;S8]", "MAX[S7.d] AND MAX[S8.d]"),
            (seven_eight, "[S7&S8]", "MAX[S7.d] AND MAX[S8.d]"),
            (definitions, "{[S7&S8];S9}", "MAX[S7.d] AND MAX[S8.d] AND MAX[S9.d]"),
        )
        for merge in ("avg", "min", "sum")
    ]
    nonlinear = f"PATTERN EK;EL;EM WHERE [moteid] {window} PREF MAX[SQRT(EK.d^2 + EL.d^2 + EM.d^2)] RETURN 10"
    return [*single, *combined, nonlinear]


RANKING = [CARD_PURCHASES, *_sensor_patterns()]

AGGREGATION = [
    """PATTERN SEQ(TypeUsername u, TypePassword p, ClickSubmit c) WHERE p.value != u.Password
       GROUP BY IP AGG COUNT WITHIN 10 s""",
    "PATTERN SEQ(Kindle k, KindleCase c, Stylus s) WHERE k.userId = c.userId = s.userId AGG COUNT WITHIN 1 hour",
    "PATTERN SEQ(TypeUsername a, TypePassword b, ClickSubmit c) AGG COUNT WITHIN 5 s",
    "PATTERN SEQ(A, B, C, D) AGG COUNT WITHIN 7 s EXCLUSIVE",
    "PATTERN SEQ(A, B, !C, D) AGG COUNT",
    "PATTERN SEQ(A, B, C, D) WHERE [id] AGG COUNT WITHIN 10 s",
    "PATTERN SEQ(VK, BK, !REC, VC, BC) AGG COUNT WITHIN 1 hour",
    "PATTERN SEQ(A, B, C, D) AGG SUM(C.weight), AVG(C.weight), MIN(C.weight), MAX(C.weight), COUNT WITHIN 10 s",
    "PATTERN SEQ(DELL, IPIX, AMAT) AGG COUNT WITHIN 1 s",
    "PATTERN SEQ(DELL, IPIX, !QQQ, AMAT) AGG COUNT WITHIN 1 s",
    *(
        f"{pattern} AGG COUNT WITHIN 1 hour"
        for pattern in (
            "SEQ(VKindle, BKindle, VCase, BCase)",
            "SEQ(VKindle, BKindle, VKindleFire)",
            "SEQ(VKindle, BKindle, VCase, BCase, VeBook, BeBook)",
            "SEQ(VKindle, BKindle, VCase, BCase, VLight, BLight)",
            "SEQ(Vipad, VKindleFire, VKindle, BKindle)",
            "SEQ(A,B,C,D,E,F,G)",
        )
    ),
]

NESTED = [
    """PATTERN SEQ(Recycle r, Washing w,
            !SEQ(Sharpening s, Disinfection d, Checking c, s.id = d.id = c.id = o.id), Operating o,
            r.id = w.id = o.id AND o.ins_type = "surgery") WITHIN 1 hour""",
    """PATTERN SEQ(Recycle r, !SEQ(Washing w, Drying dr, Sharpening s), Disinfection d,
            SEQ(Checking c, Relabeling rl), Operating op) WITHIN 30""",
    *(
        f"PATTERN {pattern} WITHIN 10"
        for pattern in (
            "SEQ(E1, !E2, !E3, E4)",
            "SEQ(A, !AND(B, C), D)",
            "SEQ(A, SEQ(B, !C), D)",
            "SEQ(A, SEQ(B, !C), SEQ(D, E), F)",
            "SEQ(A, !B, SEQ(C, D), E)",
            "SEQ(A, B, !C)",
        )
    ),
    "SEQ(MSFT, !SEQ(RIMM, AMAT), ORCL, IPIX, INTC)",
    "SEQ(MSFT, !SEQ(RIMM, AMAT), ORCL, !SEQ(YHOO, DELL), IPIX, INTC)",
    "SEQ(MSFT, !SEQ(RIMM, AMAT), ORCL, !SEQ(YHOO, DELL), IPIX, !SEQ(CSCO, QQQ), INTC)",
    "SEQ(MSFT, !SEQ(RIMM, AMAT), ORCL, INTC)",
    "SEQ(MSFT, !SEQ(RIMM, AMAT, YHOO), ORCL, INTC)",
    "SEQ(MSFT, !SEQ(RIMM, AMAT, YHOO, DELL), ORCL, INTC)",
    "SEQ(MSFT, !SEQ(IPIX, QQQ), ORCL, INTC)",
    "SEQ(MSFT, !SEQ(IPIX, SEQ(RIMM, AMAT), QQQ), ORCL, INTC)",
    "SEQ(MSFT, !SEQ(IPIX, SEQ(RIMM, SEQ(YHOO, DELL), AMAT), QQQ), ORCL, INTC)",
    "SEQ(YHOO, SEQ(QQQ, AMAT, DELL), ORCL, IPIX)",
]


def _falling_prices(length: int) -> str:
    names = [f"T{i}" for i in range(1, length + 1)]
    falls = [f"T1.price > {name}.price" for name in names[1:]]
    stocks = [f"{name}.name = 'name{i}'" for i, name in enumerate(names, start=1)]
    where = " AND ".join([*falls, *stocks])
    return f"PATTERN {';'.join(names)} WHERE {where} WITHIN 500 RETURN {', '.join(names)}"


CONDENSED = [
    """PATTERN T1;T2;T3 WHERE T1.name = T3.name AND T2.name = 'Google' AND T1.price >= T2.price + 2.0
       AND T3.price < T2.price WITHIN 500 RETURN T1, T2, T3""",
    """PATTERN T1;T2;T3;T4 WHERE T1.name = T3.name AND T2.name = 'Google' AND T1.price >= T2.price + 2.0
       AND T3.price < T2.price AND T3.price > T4.price WITHIN 500 RETURN T1, T2, T3, T4""",
    *(_falling_prices(length) for length in range(2, 7)),
    """PATTERN T1;T2;T3;T4 WHERE T1.code = T3.code AND T2.code = T4.code AND T2.code = '600210'
       AND T1.price < T2.price - 0.02 AND T3.price > T4.price + 0.02 WITHIN 1000 RETURN T1,T2,T3,T4""",
]


def _kleene_positions() -> list[str]:
    classes = ["`147073`", "`56437`", "`189820`", "`531386`"]
    patterns = ["; ".join(classes)]
    for position in range(4):
        for quantifier in ("+", "*", "[3]"):
            patterns.append("; ".join(c + quantifier * (i == position) for i, c in enumerate(classes)))
    return [f"PATTERN {pattern} WITHIN 5000 UNIT" for pattern in patterns]


KLEENE = [
    "PATTERN Google; Microsoft+ WHERE Google.value > 100 AND Google.value < Microsoft.value WITHIN 5 UNIT",
    """PATTERN Google; Microsoft[3] AND Del WHERE Google.value > 1.12 * Microsoft.value
       AND Google.value > 1.2 * Del.value WITHIN 10 SEC""",
    "PATTERN Google; Microsoft*; Del; Intel WHERE Intel.value > Microsoft.value WITHIN 200 UNIT",
    "PATTERN Google & Microsoft+ WITHIN 5 UNIT EMIT EACH",
    "PATTERN A; B[3]; C; D WITHIN 10",
    *_kleene_positions(),
    "PATTERN `531386`; `189820`; `56437`; `147073`+",
    "PATTERN `531386`+; `189820`; `56437`; `147073`",
    "PATTERN `147073`+; `56437`; `189820`; `531386`",
    "PATTERN `147073`; `56437`; `189820`",
]

SEED_QUERIES = [*RANKING, *AGGREGATION, *NESTED, *CONDENSED, *KLEENE]
