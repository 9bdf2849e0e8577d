"""Numbers of cards, accounts, companies and wallets."""

from collections.abc import Callable

import pytest

from gatehouse.detection.validators import financial, wallets
from gatehouse.detection.validators.financial import card, distinctive_card, iban

CARDS = (
    "4111111111111111", "5555 5555 5555 4444", "2223003122003222", "378282246310005", "30569309025904",
    "6011111111111117", "3530111333300000", "6200000000000005", "6759649826438453", "2200000000000004",
    "122000000000003", "4222222222222",
)  # fmt: skip


@pytest.mark.parametrize("number", CARDS)
def test_a_brands_test_card_is_a_card(number: str) -> None:
    assert card(number)


@pytest.mark.parametrize("number", CARDS)
def test_another_check_digit_is_not_found(number: str) -> None:
    wrong_numbers = [number[:-1] + digit for digit in "0123456789" if digit != number[-1]]
    assert [other for other in wrong_numbers if card(other)] == []


@pytest.mark.parametrize("number", ["0000000000000000", "79927398713", "41111111111111111", "8000000000000002"])
def test_a_number_that_no_brand_issues_is_not_a_card(number: str) -> None:
    assert not card(number)


@pytest.mark.parametrize("number", ["122000000000003", "4444444444444444"])
def test_a_card_number_with_an_ordinary_prefix_is_not_distinctive(number: str) -> None:
    assert not distinctive_card(number)


@pytest.mark.parametrize(
    "number",
    ["DE89 3704 0044 0532 0130 00", "gb29nwbk60161331926819", "NO93-8601-1117-947", "MT84MALT011000012345MTLCAST001S"],
)
def test_an_iban_of_the_registry_is_right(number: str) -> None:
    assert iban(number)


@pytest.mark.parametrize("number", ["DE89370400440532013001", "DE8937040044053201300", "XX89370400440532013000"])
def test_an_iban_of_a_wrong_sum_length_or_country_is_wrong(number: str) -> None:
    assert not iban(number)


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        (financial.aba_routing, "021000021", "021000022"),
        (financial.aba_routing, "0711-0130-7", "1234-0000-0"),
        (financial.swift, "DEUTDEFF500", "DEUTXXFF500"),
        (financial.isin, "US0378331005", "US0378331006"),
        (financial.cusip, "037833100", "037833101"),
        (financial.lei, "5493001KJTIIGC8Y1R12", "5493001KJTIIGC8Y1R13"),
        (financial.clabe, "032180000118359719", "032180000118359718"),
        (financial.abn, "51 824 753 556", "51 824 753 557"),
        (financial.acn, "005 499 981", "005 499 982"),
        (financial.kr_business, "104-86-56659", "104-86-56658"),
        (financial.se_organization, "556703-7485", "556703-7484"),
        (financial.br_cnpj, "11.222.333/0001-81", "11.222.333/0001-82"),
        (financial.it_vat, "01333550323", "01333550324"),
        (financial.fr_vat, "FR40303265045", "FR41303265045"),
        (financial.de_vat, "DE136695976", "DE036695976"),
        (financial.gstin, "27ABCDE1234F1Z5", "38ABCDE1234F1Z5"),
        (wallets.base58, "16Yeky6GMjeNkAiNcBY7ZhrLoMSgg1BoyZ", "16Yeky6GMjeNkAiNcBY7ZhrLoMSgg1Boyz"),
        (wallets.base58, "rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh", "rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTi"),
        (wallets.base58, "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8", "0JRabPrwbZy45sbavfcjinPJC18kjpRTv8"),
        (wallets.bech32, "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5"),
        (
            wallets.bech32,
            "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
            "Bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
        ),
    ],
)
def test_a_specimen_is_right_and_its_twin_wrong(check: Callable[[str], bool], right: str, wrong: str) -> None:
    assert (check(right), check(wrong)) == (True, False)
