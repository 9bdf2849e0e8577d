"""URNs and limits of the protocol, without importing the library."""

from typing import Final

USER: Final = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP: Final = "urn:ietf:params:scim:schemas:core:2.0:Group"
ENTERPRISE: Final = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"

#: maximum number of entries of a page
MAX_RESULTS: Final = 200
