"""What can go wrong with forwarding."""

from gatehouse.foundation.errors import Conflict


class NotConfigured(Conflict):
    code = "siem_not_configured"
    message = "There is no receiver yet: PUT /api/v1/admin/siem first."
