"""Evaluates the policy rules about a call of a tool, and asks for the approval that the tool requires (docs/mcp.md)."""

from typing import Any, Final

import msgspec

from gatehouse.engine.exchange import CalledTool, CallRequest
from gatehouse.engine.ports import Ports
from gatehouse.engine.records.outcome import RuleEvent
from gatehouse.engine.stages.candidates.policy_rules import (
    approval_hold,
    note,
    request_variables,
    violation,
)
from gatehouse.engine.verdict import ALLOW, ApprovalResult, Ask, Hold, Refuse, Verdict
from gatehouse.foundation.errors import Forbidden
from gatehouse.policy.rules.conditions import TOOL_CALL
from gatehouse.policy.rules.evaluation import context_of, decide
from gatehouse.policy.snapshot import Snapshot

#: Field of the body in which the stages see the arguments. Topic filters inspect this field. The name is not `input` or
#: `text`, because stages treat these specially.
ARGUMENTS: Final = "query"
#: maximum size of arguments that rules evaluate, because an evaluation does not yield to other requests
MAX_ARGUMENT_BYTES: Final = 64 * 1024


class ArgumentsNotEvaluated(Forbidden):
    type = "policy_violation"
    code = "arguments_not_evaluated"
    message = (
        f"The organization's policy rules read the arguments, which must have at most {MAX_ARGUMENT_BYTES // 1024} KiB"
        " of JSON and valid Unicode."
    )


class ToolNotApproved(Forbidden):
    type = "policy_violation"
    code = "tool_not_approved"
    message = "Calls of this tool require an approval, which was denied or not granted in time."


def judge(x: CallRequest, ports: Ports) -> Verdict:
    called = x.called_tool
    assert called is not None
    verdict = _by_rules(x, called) if x.identified.policy.rules.tool_rules else ALLOW
    return _by_tool(x, called) if verdict is ALLOW and called.tool.approval_required else verdict


def _by_rules(x: CallRequest, called: CalledTool) -> Verdict:
    rules = x.identified.policy.rules
    about: dict[str, Any] = {"server": called.server.name, "tool": called.tool.name}
    if rules.reads_arguments:
        about["arguments"] = x.call.body[ARGUMENTS]
        # Measured after redaction, because the replacements may be longer than the original text.
        if len(msgspec.json.encode(about["arguments"])) > MAX_ARGUMENT_BYTES:
            return Refuse(ArgumentsNotEvaluated())
    variables = request_variables(x, rules.needs, None)
    try:
        context = context_of({**variables, TOOL_CALL: about}, rules.needs)
    except ValueError:
        # The evaluator cannot represent a value, such as half of a surrogate pair.
        return Refuse(ArgumentsNotEvaluated())
    ruling = decide(rules.tool_rules, context, x.call.model)
    note(x, ruling, x.call.model)
    rule = ruling.decisive
    if rule is None or ruling.action in {"ALLOW", "LOG"}:
        return ALLOW
    if ruling.action == "REQUIRE_APPROVAL" and has_approvals(x.identified.policy):
        return approval_hold(x, rule, x.call.model)
    return Refuse(violation(rule))


def _by_tool(x: CallRequest, called: CalledTool) -> Verdict:
    """Return the verdict for a tool whose calls require an approval. An approval for a policy rule covers this too,
    because it approves the same call."""
    if not has_approvals(x.identified.policy):
        return Refuse(
            ToolNotApproved(
                "Calls of this tool require an approval, but approvals are switched off in this organization"
                " (`human_in_loop`)."
            )
        )

    def settled(result: ApprovalResult) -> None:
        x.rule_events.append(
            RuleEvent(
                kind="mcp_tool",
                rule_id=str(called.tool.id),
                rule_name=called.tool.name,
                action="REQUIRE_APPROVAL",
                result=result,
                model=x.call.model,
            )
        )

    refusal = ToolNotApproved()
    refusal.headers["X-DLP-Action"] = "CANCEL"
    return Hold(Ask(reason=f"calls of {x.call.model} require an approval"), refusal, settled)


def has_approvals(policy: Snapshot) -> bool:
    """Return whether persons can approve calls in this organization."""
    return policy.feature_flags.get("human_in_loop", False)
