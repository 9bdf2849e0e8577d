"""Errors of the SIEM endpoints."""

from gatehouse.foundation.errors import Conflict, Forbidden


class SiemNotConfigured(Conflict):
    code = "siem_not_configured"
    message = "No receiver is configured. Configure one with PUT /api/v1/admin/siem first."


class FileIsForOperators(Forbidden):
    code = "siem_file_is_for_operators"
    message = "The type `file` writes to the server's disk, so only operators of the platform may choose it."
