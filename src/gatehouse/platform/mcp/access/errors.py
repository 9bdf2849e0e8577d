"""Errors of access rules of MCP servers."""

from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable


class AccessRuleNotFound(NotFound):
    message = "Access rule not found"


class AccessRuleExists(Conflict):
    code = "mcp_access_rule_exists"
    message = "The server already has a rule for this subject and tool. Remove that rule first."


class TooManyMcpAccessRules(Conflict):
    code = "too_many_mcp_access_rules"
    message = "The organization has the maximum number of access rules of MCP servers. Remove some first."


class InvalidAccessField(Unprocessable):
    """The subject or tool of a rule does not exist. Without this error, a rule with a misspelled name would have no
    effect."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(faults=[FieldFault(field, message)])
