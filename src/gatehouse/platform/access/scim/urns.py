"""Names and bounds of the protocol that need no library to be known."""

from typing import Final

USER: Final = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP: Final = "urn:ietf:params:scim:schemas:core:2.0:Group"
ENTERPRISE: Final = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"

#: entries of a page at most (reference 2, SCIM resources)
MAX_RESULTS: Final = 200
