"""The steps of the pipeline are data. A table must have an entry for every step, and no stage raises its verdict."""

import ast
import inspect
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tests.support.engine import EngineHarness, completion

from gatehouse.engine import pipeline, stages
from gatehouse.engine.pipeline import Step
from gatehouse.engine.stages.callers import scope
from gatehouse.engine.timing import Timing
from gatehouse.engine.verdict import Ask, Hold, Refuse, Reroute, Rewrite
from gatehouse.foundation.errors import Forbidden, Unavailable

GROUPS = (pipeline.ARRIVAL, pipeline.MODEL_CALLER, pipeline.CALL, pipeline.ADMITTED)
CHECKS = [
    *(step.check for group in GROUPS for step in group),
    *pipeline.CANDIDATE,
    *(step.check for step in pipeline.ANSWER),
    *pipeline.SETTLE,
    *pipeline.LISTED,
    pipeline.IDENTIFY,
    pipeline.IDENTIFY_KNOWN,
    pipeline.CACHED,
    pipeline.FIRST_CHOICE,
    pipeline.WATCH,
    pipeline.AWAIT_APPROVAL,
    pipeline.STREAM_GUARD,
    pipeline.STREAM_HOLD,
    pipeline.ERROR_TEXT,
    pipeline.SENDING,
    pipeline.TOOL_SENDING,
    pipeline.TOOL_ACCESS,
    pipeline.TOOL_RULES,
    pipeline.RESERVE_TOOL_CALL,
    pipeline.TOOL_RESULT,
]


def test_a_table_without_an_entry_for_a_step_does_not_load() -> None:
    entries = {step.check: None for step in pipeline.CALL}
    assert pipeline.table(pipeline.CALL, entries) == [None] * len(pipeline.CALL)
    forgotten = pipeline.CALL[-1].check
    del entries[forgotten]
    with pytest.raises(TypeError, match=f"missing: {forgotten.__module__}.{forgotten.__name__}"):
        pipeline.table(pipeline.CALL, entries)


def test_a_table_with_an_entry_for_no_step_does_not_load() -> None:
    entries = {step.check: None for step in (*pipeline.CALL, Step(scope.check, "limits"))}
    with pytest.raises(TypeError):
        pipeline.table(pipeline.CALL, entries)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: f"{check.__module__.rpartition('.')[2]}.{check.__name__}")
def test_a_stage_returns_its_verdict_and_does_not_raise_it(check: object) -> None:
    module = inspect.getmodule(check)
    assert module is not None
    assert module.__name__.startswith(stages.__name__)
    assert not raised(module), "return Refuse(error) instead"


def raised(module: ModuleType) -> list[str]:
    """Return the lines of a module that raise something."""
    source = inspect.getsource(module)
    return [ast.unparse(node) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Raise)]


def test_all_steps_of_a_call_are_timed() -> None:
    timing = Timing(lambda: 0.0, 0.0, "auth")
    for group in GROUPS:
        for step in group:
            timing.end(step.part)
    assert set(timing.header().replace(";dur=0.000", "").split(", ")) == {
        "auth", "limits", "dlp_in", "filters", "route", "budget", "total",
    }  # fmt: skip


async def test_the_state_of_the_rate_limit_is_in_the_headers_of_the_answer() -> None:
    harness = EngineHarness()
    harness.serve("one", "m")
    harness.outbound.script = [(200, [completion()])]
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
    answer = await harness.engine.answer(harness.request(body))
    assert answer.exchange is not None
    assert answer.exchange.rate is not None
    assert answer.exchange.rate.headers().items() <= answer.headers.items()


def test_a_step_is_timed_until_the_next_step_is_requested() -> None:
    now = 0.0
    timing = Timing(lambda: now, now, "auth")
    for step in timing.steps([Step(scope.check, "limits"), Step(scope.check, "route"), Step(scope.check, "limits")]):
        now += 1.0 if step.part == "limits" else 5.0
    assert timing.header() == "auth;dur=0.000, limits;dur=2000.000, route;dur=5000.000, total;dur=7000.000"


def test_the_time_of_a_step_that_refuses_is_not_in_the_header() -> None:
    timing = Timing(lambda: 1.0, 1.0, "auth")
    steps = timing.steps([Step(scope.check, "limits")])
    assert next(steps).part == "limits"
    steps.close()
    assert timing.header() == "auth;dur=0.000, total;dur=0.000"


def test_the_stages_that_list_models_also_judge_candidates() -> None:
    assert set(pipeline.LISTED) <= set(pipeline.CANDIDATE)


@pytest.mark.parametrize("verdict", [Rewrite({}), Reroute, None, object()])
def test_an_unhandled_verdict_does_not_let_the_request_pass(verdict: object) -> None:
    with pytest.raises(TypeError):
        pipeline.obey(verdict)  # type: ignore[arg-type]


@pytest.mark.parametrize("step", ["approval", "tool call"])
async def test_a_refusal_of_a_port_is_returned_as_a_verdict(step: str) -> None:
    error = Unavailable("The database does not answer.")

    async def fail(*_: object, **__: object) -> None:
        raise error

    ports: Any = SimpleNamespace(approvals=SimpleNamespace(decision=fail), spend=SimpleNamespace(reserve=fail))
    decisions: list[str] = []
    if step == "approval":
        x: Any = SimpleNamespace(call=SimpleNamespace(dialect="openai_chat"))
        hold = Hold(Ask(reason="finding"), Forbidden("Not approved."), decisions.append)
        verdict = await pipeline.AWAIT_APPROVAL(x, hold, ports)
        assert decisions == ["cancelled"]
    else:
        budgets = SimpleNamespace(of=lambda _: SimpleNamespace(budgets=()))
        x = SimpleNamespace(
            policy=SimpleNamespace(budgets=budgets, feature_flags={}), caller=SimpleNamespace(user_id=None)
        )
        verdict = await pipeline.RESERVE_TOOL_CALL(x, ports)
    assert isinstance(verdict, Refuse)
    assert verdict.error is error
