"""Runs the rules of gitleaks with RE2, which has the same regexes as Go. Keywords are searched for first, then regex,
entropy and allow lists are applied.

It behaves like gitleaks for a text without path and commit. Rules that need a path find nothing. Encoded text is not
decoded, unlike with a flag of gitleaks. Findings of the general rule are kept if a special rule has the same finding.
"""

import tomllib
from collections import Counter
from math import log2
from pathlib import Path
from typing import Any, NamedTuple

import re2

from gatehouse.detection.regex.byte_search import ANYWHERE, search_of


class Allowlist:
    """An allow list. `target` is `secret`, `match` or `line`."""

    def __init__(self, written: dict[str, Any]) -> None:
        self.target = written.get("regexTarget", "secret")
        # If a path must match too, the allow list never applies.
        never = written.get("condition") == "AND" and "paths" in written
        self._regexes = [] if never else [compiled(one) for one in written.get("regexes", [])]
        self._words = [] if never else [word.lower() for word in written.get("stopwords", [])]
        self._both = written.get("condition") == "AND" and bool(self._regexes) and bool(self._words)

    def allows(self, target: str, secret: str) -> bool:
        matches = any(regex.search(target) for regex in self._regexes)
        lower = secret.lower()
        stops = any(word in lower for word in self._words)
        return (matches and stops) if self._both else (matches or stops)


class Rule(NamedTuple):
    regex: Any
    group: int
    entropy: float
    allowlists: list[Allowlist]


class Rules:
    def __init__(self, file: Path) -> None:
        written = tomllib.loads(file.read_text())
        general = [Allowlist(one) for one in (*written.get("allowlists", ()), written.get("allowlist")) if one]
        self._rules: list[Rule] = []
        self._always: list[int] = []
        self._keywords = re2.Set.SearchSet(options())
        #: the number of the rule that each keyword belongs to
        self._by_keyword: list[int] = []
        for rule in written["rules"]:
            if "path" in rule or "regex" not in rule:
                continue
            number = len(self._rules)
            allowlists = general + [Allowlist(one) for one in rule.get("allowlists", ())]
            self._rules.append(
                Rule(compiled(rule["regex"]), rule.get("secretGroup", 0), rule.get("entropy", 0.0), allowlists)
            )
            if not rule.get("keywords"):
                self._always.append(number)
            for keyword in rule.get("keywords", ()):
                self._keywords.Add(re2.escape(keyword.lower()))
                self._by_keyword.append(number)
        self._keywords.Compile()

    def find(self, text: str) -> list[tuple[int, int, str, float]]:
        passed = {*self._always, *(self._by_keyword[place] for place in self._keywords.Match(text.lower()) or ())}
        data = text.encode()
        return [match for number in sorted(passed) for match in self._matches(self._rules[number], text, data)]

    def _matches(self, rule: Rule, text: str, data: bytes) -> list[tuple[int, int, str, float]]:
        results = []
        search, place = search_of(rule.regex), 0
        while place <= len(data):
            begin, end = search(ANYWHERE, data, place, len(data))[0]
            if begin < 0:
                break
            place = max(end, begin + 1)
            match = data[begin:end].decode(errors="replace").strip("\n")
            start = len(data[:begin].decode(errors="replace"))
            secret = _secret(rule, match)
            line = text[text.rfind("\n", 0, start) + 1 :].partition("\n")[0]
            if "gitleaks:allow" in line or (rule.entropy and entropy(secret) <= rule.entropy):
                continue
            targets = {"secret": secret, "match": match, "line": line}
            if not any(one.allows(targets[one.target], secret) for one in rule.allowlists):
                start += max(0, text[start : start + len(match) + 2].find(secret))
                results.append((start, start + len(secret), "secret", 1.0))
        return results


def _secret(rule: Rule, match: str) -> str:
    """Return the group of the match that the rule names, or the first group that is not empty, or the complete
    match."""
    again = rule.regex.search(match)
    groups = again.groups() if again else ()
    if rule.group:
        return groups[rule.group - 1] or "" if groups else match
    return next((group for group in groups if group), match)


def entropy(text: str) -> float:
    """Return the Shannon entropy in bits per character."""
    return -sum(times / len(text) * log2(times / len(text)) for times in Counter(text).values())


def options() -> Any:
    chosen = re2.Options()
    chosen.max_mem = 64 << 20
    chosen.log_errors = False
    return chosen


def compiled(regex: str) -> Any:
    return re2.compile(regex, options())
