"""Maximum lifetime of tokens, and of revocations and keys, which must outlive them."""

from typing import Final

#: Maximum lifetime of a token, and of a client's `token_lifetime_seconds`.
MAX_TOKEN_LIFETIME_SECONDS: Final = 86_400

#: Seconds after which every token that was signed until now has expired. The margin covers clock skew, and workers that
#: load a new signing key late.
MAX_TOKEN_AGE_SECONDS: Final = MAX_TOKEN_LIFETIME_SECONDS + 300
