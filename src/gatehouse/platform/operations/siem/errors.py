"""Errors of the SIEM endpoints."""

from gatehouse.foundation.errors import Conflict, Forbidden, PreconditionFailed


class SiemNotConfigured(Conflict):
    code = "siem_not_configured"
    message = "No receiver is configured. Configure one with PUT /api/v1/admin/siem first."


class SiemNotNew(PreconditionFailed):
    """`If-None-Match: *` of a request that sets up the receiver, for an organization that has one."""

    code = "siem_configured"
    message = "A receiver is configured. Nothing was changed. Read it with GET /api/v1/admin/siem, then change it."


class FileIsForOperators(Forbidden):
    code = "siem_file_is_for_operators"
    message = "The type `file` writes to the server's disk, so only operators of the platform may choose it."
