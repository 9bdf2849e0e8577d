"""Conditions of policy rules: the permitted syntax and the maximum cost."""

import time

import cel
import pytest

from gatehouse.policy.rules.conditions import (
    EXAMPLES,
    FUNCTIONS,
    BadCondition,
    ConditionFailed,
    check,
    compile_condition,
    evaluate,
)


def context(**changed: object) -> cel.Context:
    return cel.Context(variables={**EXAMPLES, **changed}, functions=FUNCTIONS)


@pytest.mark.parametrize(
    "condition",
    [
        "true",
        'model == "openai/gpt-4o"',
        'model.startsWith("openai/") && provider != "azure"',
        'model_risk_tier in ["tier_1", "tier_2"] || validation_status == "unregistered"',
        'user.role != "admin" && user.email.endsWith("@example.com")',
        'groups.exists(g, g == "0192f3c4-5d6e-7f80-9123-0000000000aa")',
        '"ssn" in dlp.entities',
        "has(dlp.counts.ssn) && dlp.counts.ssn >= 3",
        'dlp.counts["email"] > 2',
        'size(dlp.entities.filter(e, e.startsWith("s"))) > 0 // several',
        "tokens > 8000",
        "cost_usd == null || cost_usd > 0.5",
        '!ip.in_range("10.0.0.0/8")',
        "time.getHours() < 8 || time.getDayOfWeek() == 0",
        'time > timestamp("2026-01-01T00:00:00Z")',
        "tokens > 5 ? true : false",
        r"user.email == 'it\'s'",
    ],
)
def test_a_valid_condition_is_accepted(condition: str) -> None:
    check(condition)


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("model ==", "1:9: Syntax error"),
        ("colour == 1", "'colour', which is not a variable"),
        ("model", "returns str"),
        ("tokens + 1", "returns int"),
        ("model > 5", "No such overload"),
        ('timestamp("soon") < time', "fails on an example"),
        ('ip.in_range("nowhere")', "returns NoneType"),
        ('model.matches("(a+)+")', "'matches', which is not available"),
        ("unheard(model)", "'unheard', which is not available"),
        ('model.lowerAscii() == "a"', "'lowerAscii', which is not available"),
        ("[1, 2].exists(x, x == 1)", "something other than"),
        ("user.groups.exists(x, true)", "something other than"),
        ("groups.exists(g, groups.exists(h, h == g))", "inside another"),
        ("groups.filter(g, true).exists(g, true)", "something other than"),
        ("groups.map(g, g).size() > 1", "'map', which is not available"),
        ("groups.exists(model, model == model)", "the name of an available variable"),
        ("groups.all(a, true) && groups.all(a, true) && groups.all(a, true) && groups.all(a, true)"
         " && groups.all(a, true)", "more than 4 comprehensions"),
        ('r"x" == "x"', "not written as"),
        ('"""x""" == "x"', "not written as"),
        ("ip.`x` == 1", "cannot be read at character 4"),
        ("(" * 21 + "true" + ")" * 21, "more than 20 deep"),
        ("+".join(["1"] * 300) + " == 1", "more than 500 words"),
        ("true" + " " * 2_000, "longer than 2000"),
        ("", "Syntax error"),
    ],
)  # fmt: skip
def test_a_bad_condition_is_refused_with_its_reason(condition: str, reason: str) -> None:
    with pytest.raises(BadCondition) as refused:
        check(condition)
    assert reason in str(refused.value)


def test_brackets_and_calls_within_a_text_are_text() -> None:
    check('model == "groups.map(((((((((((((((((((((((((" || true')


@pytest.mark.parametrize(
    ("condition", "variables"),
    [
        ('dlp.counts["iban"] > 2', {}),
        ("cost_usd > 1.0", {"cost_usd": None}),
        ("tokens / 0 > 1", {}),
        ("9223372036854775807 + tokens > 1", {}),
        ("ip.in_range(user.id)", {}),
    ],
)
def test_a_condition_without_a_result_fails(condition: str, variables: dict[str, object]) -> None:
    with pytest.raises(ConditionFailed):
        evaluate(compile_condition(condition), context(**variables))


@pytest.mark.parametrize(
    "condition",
    [
        "groups.exists(a, a in [" + ",".join(['"x"'] * 220) + "])",
        "+".join(["tokens"] * 240) + " > 1",
        " && ".join(["groups.all(a, a != model && a != provider && a != ip && a != model_risk_tier)"] * 4),
        "!" * 490 + "true",
    ],
)
def test_no_condition_keeps_a_worker_busy(condition: str) -> None:
    program = compile_condition(condition)
    variables = context(groups=[f"group-{n}" for n in range(100)])
    # Processor time, so that other processes do not affect the test.
    started = time.thread_time()
    evaluate(program, variables)
    assert time.thread_time() - started < 0.1
