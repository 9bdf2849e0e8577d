"""Errors of access rules of MCP servers."""

from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable


class AccessRuleNotFound(NotFound):
    message = "Access rule not found"


class AccessRuleExists(Conflict):
    code = "mcp_access_rule_exists"
    message = "The server has a rule for this subject and tool already. Remove it first."


class TooManyMcpAccessRules(Conflict):
    code = "too_many_mcp_access_rules"
    message = "The organization has as many access rules of MCP servers as it may have. Remove some first."


class InvalidAccessField(Unprocessable):
    """A subject or a tool that does not exist. A rule with a misspelled name would silently have no effect."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(faults=[FieldFault(field, message)])
