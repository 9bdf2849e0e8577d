"""Errors of allowed domains."""

from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable


class DomainNotFound(NotFound):
    message = "The organization has no such domain."


class DomainExists(Conflict):
    code = "domain_exists"
    message = "domain: the organization already has this domain."


class TooManyDomains(Conflict):
    code = "too_many_domains"
    message = "An organization can have at most 100 domains."


class DomainNotProven(Conflict):
    code = "domain_not_proven"

    def __init__(self, name: str, value: str) -> None:
        super().__init__(f"There is no TXT record {name} with the value {value}.")


class DomainProvenElsewhere(Conflict):
    code = "domain_proven_elsewhere"
    message = "Another organization has verified this domain."


class UnknownGroup(Unprocessable):
    def __init__(self) -> None:
        super().__init__(faults=[FieldFault("default_group_id", "The organization has no such group.")])
