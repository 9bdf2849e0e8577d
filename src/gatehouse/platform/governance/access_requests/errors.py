"""Errors of access requests."""

from gatehouse.foundation.errors import BadRequest, Conflict, FieldFault, NotFound, Unprocessable


class AccessRequestNotFound(NotFound):
    message = "Access request not found"


class SortsPendingOnly(BadRequest):
    code = "invalid_sort"
    message = "sort: limit_usd sorts only pending requests. Add status=pending, or sort by created_at."


class InvalidRequestField(Unprocessable):
    def __init__(self, field: str, fault: str) -> None:
        super().__init__(faults=[FieldFault(field, fault)])


class RequestExists(Conflict):
    code = "request_exists"
    message = "You have a pending request for this already. Wait for its decision, or withdraw it first."


class TooManyOwnRequests(Conflict):
    code = "too_many_own_requests"
    message = "You have the maximum number of pending requests. Withdraw one first."


class TooManyAccessRequests(Conflict):
    code = "too_many_access_requests"
    message = "The organization has the maximum number of pending access requests. Ask an administrator to decide some."


class RequestNotPending(Conflict):
    """The request is in a final state, which `status` names."""

    code = "not_pending"

    def __init__(self, status: str) -> None:
        super().__init__(f"This request is not pending: it is {status}.", status=status)


class DeniedByGroup(Conflict):
    """A rule of another group denies the model to the requester, so that an ALLOW would have no effect."""

    code = "denied_by_group"

    def __init__(self, model: str, group: str) -> None:
        super().__init__(
            f"The group {group!r} denies {model} to its members, and the person is one of them. Remove the rule or"
            " the person from that group, or deny the request.",
            code=self.code,
            group=group,
        )


class ModelNotInCatalog(Conflict):
    code = "model_not_in_catalog"

    def __init__(self, model: str) -> None:
        super().__init__(f"{model} is no longer in the catalog. Add it again, or deny the request.", code=self.code)


class GroupWithoutRule(Conflict):
    """The group that was created for the model exists, but no longer has a rule that allows the model."""

    code = "group_without_rule"

    def __init__(self, model: str, group: str) -> None:
        super().__init__(
            f"The group {group!r} has no rule that allows {model}. Add the rule, or send the `group_id` of another"
            " group.",
            code=self.code,
            group=group,
        )
