"""Maximum lifetime of tokens, and of what must outlive them."""

from typing import Final

#: Maximum lifetime of a token; a client's `token_lifetime_seconds` is capped at it.
MAX_TOKEN_LIFETIME_SECONDS: Final = 86_400

#: After this many seconds every token that was signed until now has expired. The margin covers clock skew, and workers
#: that learned late of a new signing key.
MAX_TOKEN_AGE_SECONDS: Final = MAX_TOKEN_LIFETIME_SECONDS + 300
