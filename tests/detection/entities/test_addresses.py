import time

import pytest

from gatehouse.detection.entities import addresses


def addresses_in(text: str) -> list[str]:
    return [text[finding.start : finding.end] for finding in addresses.find(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I live at 221b Baker Street, London NW1 6XE now.", "221b Baker Street, London NW1 6XE"),
        (
            "Send it to 1600 Pennsylvania Ave NW, Washington, DC 20500.",
            "1600 Pennsylvania Ave NW, Washington, DC 20500",
        ),
        ("14 St. John Street", "14 St. John Street"),
        ("2914 184th Street", "2914 184th Street"),
        ("Sie wohnt Hauptstraße 12a, Bremen", "Hauptstraße 12a"),
        ("66 gamla svedalavägen 75 suite 291", "66 gamla svedalavägen 75 suite 291"),
        ("c'est au 7 rue Charles Corbeau", "7 rue Charles Corbeau"),
        ("40 Rue de la Sarthe 421", "40 Rue de la Sarthe 421"),
        ("przy ul. Miła 53", "ul. Miła 53"),
        ("P.O. Box 211", "P.O. Box 211"),
        ("PSC 4095, Box 8316\nAPO AE 85103", "PSC 4095, Box 8316\nAPO AE 85103"),
        ("FPO AE 25990", "FPO AE 25990"),
        ("692 Kuuse 53 Apt. 641", "692 Kuuse 53 Apt. 641"),
        (
            "0104 Hafnarstraeti 5\n Suite 179\n Akureyri\n Iceland 80296",
            "0104 Hafnarstraeti 5\n Suite 179\n Akureyri\n Iceland 80296",
        ),
    ],
)
def test_an_address_is_found_whole(text: str, expected: str) -> None:
    assert addresses_in(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "We met on 3 May 1999 in Berlin.",
        "There are 12 monkeys on the road.",
        "Read more via Twitter.",
        "The 2 boys played 7 games and won 5.",
        "For example, during 2014 sales rose 5 percent.",
        "Version 3 Release 12",
        "Main Street was closed.",
        "def street(number: int = 12): return avenue[7]",
    ],
)
def test_text_that_is_not_an_address_is_not_found(text: str) -> None:
    assert addresses_in(text) == []


@pytest.mark.parametrize("piece", ["12 Oak ", "1 ", "Main Street ", "de la ", "Via Roma 1, ", "Rue De ", "Apt 1 "])
def test_the_time_for_a_hostile_text_is_linear_in_its_length(piece: str) -> None:
    def seconds(length: int) -> float:
        text = (piece * length)[:length]
        best = 1e9
        for _ in range(3):
            began = time.process_time()
            addresses.find(text)
            best = min(best, time.process_time() - began)
        return best

    seconds(600)
    # For eight times the text, a quadratic algorithm would need sixty-four times the time.
    assert seconds(9600) < 30 * max(seconds(1200), 0.002)
