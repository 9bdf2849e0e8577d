"""The examples of the built-in patterns inside data of tools: JSON in JSON, logs, XML and CSV."""

import csv
import io
import json
from collections.abc import Callable
from typing import NamedTuple
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape, quoteattr

import pytest

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.findings import Finding
from gatehouse.detection.matcher import Matcher
from gatehouse.engine.conversation.slots import Slot
from gatehouse.engine.dlp.body import apply_replacements
from gatehouse.engine.dlp.inspection import Replacement

MATCHER = Matcher(BUILT_IN)
PATTERNS = {pattern.id: pattern for pattern in BUILT_IN}
EXAMPLES = [(pattern.id, example) for pattern in BUILT_IN for example in pattern.examples]
LABEL = "[VALUE_1]"

#: Examples whose only evidence is a check digit or a grouping. They are values as a whole text or in a sentence. In
#: tables, logs and unnamed fields, order numbers look the same.
ONLY_AS_TEXTS_OF_THEIR_OWN = frozenset(
    {
        "536 22 8726", "130 692 544", "3998 7654 3211", "10000000146", "9202201234088", "123/456/78901", "556703-7485",
        "1234-567-893", "401-023-2137", "A000500015",
    }
)  # fmt: skip
#: Patterns by which an example may be found instead, because both have the same form with a name.
ALTERNATIVE_PATTERNS = {"stored_credential": "password"}


class Carrier(NamedTuple):
    """A form in which a text is embedded. `unwrap` returns the text that `wrap` received. It raises if the surroundings
    of the text have changed."""

    wrap: Callable[[str], str]
    unwrap: Callable[[str], str]


def nested_json(text: str) -> str:
    return json.dumps({"id": 7, "body": json.dumps({"value": text, "open": True})})


def from_nested_json(carrier: str) -> str:
    outer = json.loads(carrier)
    inner = json.loads(outer["body"])
    assert (outer["id"], inner["open"]) == (7, True)
    return str(inner["value"])


def behind(separator: str) -> Carrier:
    return Carrier(
        lambda text: json.dumps({"log": f"line{separator}{text}"}),
        lambda log: str(json.loads(log)["log"]).removeprefix(f"line{separator}"),
    )


def escaped(text: str) -> str:
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


def row(quoting: int) -> Carrier:
    def wrap(text: str) -> str:
        lines = io.StringIO()
        csv.writer(lines, quoting=quoting).writerows([("id", "value", "state"), ("7", text, "open")])
        return lines.getvalue()

    def unwrap(carrier: str) -> str:
        _, (number, text, state) = csv.reader(io.StringIO(carrier, newline=""))
        assert (number, state) == ("7", "open")
        return text

    return Carrier(wrap, unwrap)


def from_element(carrier: str) -> str:
    [item] = ET.fromstring(carrier)
    assert item.attrib == {"id": "7"}
    return item.text or ""


def from_attribute(carrier: str) -> str:
    [item] = ET.fromstring(carrier)
    assert item.attrib["id"] == "7"
    return item.attrib["value"]


CARRIERS: dict[str, Carrier] = {
    "JSON in JSON": Carrier(nested_json, from_nested_json),
    "line break": behind("\n"),
    "tab": behind("\t"),
    "unicode escapes": Carrier(lambda t: f'{{"value": "{escaped(t)}"}}', lambda c: str(json.loads(c)["value"])),
    "XML element": Carrier(lambda t: f'<row><item id="7">{escape(t)}</item></row>', from_element),
    "XML attribute": Carrier(lambda t: f'<row><item id="7" value={quoteattr(t)}/></row>', from_attribute),
    "CSV": row(csv.QUOTE_MINIMAL),
    "CSV in quotes": row(csv.QUOTE_ALL),
}
JSON_CARRIERS = {"JSON in JSON", "line break", "tab", "unicode escapes"}


def counted(text: str, *, json_escapes: bool = False) -> list[Finding]:
    findings = MATCHER.scan(text, json_escapes=json_escapes)
    return [finding for finding in findings if finding.score >= PATTERNS[finding.source].threshold]


def redacted(text: str, findings: list[Finding], *, json_text: bool) -> str:
    merged: list[Replacement] = []
    for finding in sorted(findings, key=lambda finding: finding.start):
        if merged and finding.start < merged[-1].end:
            merged[-1] = Replacement(merged[-1].start, max(merged[-1].end, finding.end), LABEL)
        else:
            merged.append(Replacement(finding.start, finding.end, LABEL))
    return apply_replacements(Slot({}, "content", text, json_text=json_text), merged)


def missed(carrier: Carrier, source: str, example: str, *, is_json: bool, json_text: bool) -> str | None:
    """Return a description of the fault if the example is not found in the carrier, else None."""
    text = carrier.wrap(example)
    assert carrier.unwrap(text) == example
    values = {example[item.start : item.end] for item in counted(example) if item.source == source}
    assert values
    result = counted(text, json_escapes=json_text)
    entity_type = PATTERNS[source].entity_type
    if not {entity_type, ALTERNATIVE_PATTERNS.get(entity_type)} & {
        PATTERNS[item.source].entity_type for item in result
    }:
        return "not found"
    left = redacted(text, result, json_text=json_text)
    if is_json:
        left = carrier.unwrap(left)
    if any(written in left for value in values for written in (value, escape(value), value.replace('"', '""'))):
        return f"left: {left}"
    return None


@pytest.mark.parametrize("name", CARRIERS)
def test_an_example_is_found_in_the_carrier_and_json_stays_json(name: str) -> None:
    is_json = name in JSON_CARRIERS
    examples = [example for example in EXAMPLES if example[1] not in ONLY_AS_TEXTS_OF_THEIR_OWN]
    wrong = {}
    for source, example in examples:
        # JSON in arguments of tools is distinguished from JSON in a text.
        for json_text in (False, True) if is_json else (False,):
            fault = missed(CARRIERS[name], source, example, is_json=is_json, json_text=json_text)
            if fault is not None:
                wrong[source, example] = fault
    print(f"{name}: {len(examples) - len(wrong)} of {len(EXAMPLES)} examples found")  # noqa: T201 - the figure of docs/dlp-patterns.md
    assert not wrong


@pytest.mark.parametrize("example", sorted(ONLY_AS_TEXTS_OF_THEIR_OWN))
def test_a_number_with_only_a_check_digit_is_not_a_value_in_data(example: str) -> None:
    sources = {source for source, item in EXAMPLES if item == example}
    assert sources <= {finding.source for finding in counted(example)}
    assert not sources & {finding.source for finding in counted(f"7,{example},open")}


def test_the_name_of_a_field_gives_context_to_its_number() -> None:
    assert "uk-nhs" in {item.source for item in counted(json.dumps({"body": json.dumps({"nhs": "401-023-2137"})}))}
