from tests.foundation.counters.conftest import server

__all__ = ["server"]
