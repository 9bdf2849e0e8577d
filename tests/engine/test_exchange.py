"""The states of a request."""

import msgspec
import pytest

from gatehouse.engine.exchange import Admitted, CallRequest, Identified, Routed


@pytest.mark.parametrize("state", [Identified, CallRequest, Routed, Admitted])
def test_a_state_does_not_change(state: type[msgspec.Struct]) -> None:
    """A later step makes a new state. It does not set a field of an earlier one."""
    assert state.__struct_config__.frozen
