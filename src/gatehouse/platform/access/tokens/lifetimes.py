"""How long a token can live, and with it everything that must outlive one."""

from typing import Final

#: The longest lifetime that a token gets (reference 2, OAuth client: `token_lifetime_seconds` is capped there).
LONGEST_SECONDS: Final = 86_400

#: After this many seconds no token that was signed until now is good anywhere. The rest is for clocks that differ, and
#: for workers that heard late that another key signs.
OUTLIVED_SECONDS: Final = LONGEST_SECONDS + 300
