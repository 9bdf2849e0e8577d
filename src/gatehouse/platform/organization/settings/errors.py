"""What can go wrong with settings, and how errors of an organization's settings look (reference 2)."""

from typing import Final

from gatehouse.foundation.errors import Conflict
from gatehouse.foundation.http.envelopes import NAMED, ErrorForm

FORM: Final[ErrorForm] = NAMED


class SlugOfOperators(Conflict):
    code = "slug_of_operators"
    message = "slug: the organization of the platform's operators is called default."
