import pytest

from gatehouse.foundation.http.middleware import request_id


@pytest.mark.parametrize("sent", ["a", "A-b_c.9", "0" * 128, "3f2b8c1e-0000-7000-8000-000000000000"])
def test_a_well_formed_id_is_used(sent):
    assert request_id.choose(sent) == sent


@pytest.mark.parametrize(
    "sent", [None, "", "0" * 129, "a b", "a\n", "a\r\nX: y", "ä", "٣", "a/b", "\x00", "{}", "a" * 10**6]
)
def test_a_malformed_id_is_replaced_by_a_new_one(sent):
    chosen = request_id.choose(sent)
    assert chosen != sent
    assert len(chosen) == 32
    assert request_id.choose(sent) != chosen
