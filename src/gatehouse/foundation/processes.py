"""What processes are to each other."""

import ctypes
import signal
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def die_with_parent(number: int = signal.SIGTERM) -> None:
    """When the supervisor is killed its children end too, else they would keep the port."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number)
