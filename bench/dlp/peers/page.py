"""Writes docs/benchmarks-dlp.md and its picture. `python -m bench.dlp.peers.page` writes them from the newest run."""

import json
import subprocess
from statistics import mean
from typing import Any, Final

from bench.dlp.peers.judging import COLUMNS
from bench.dlp.speed import LENGTHS
from bench.rig import install

PAGE: Final = install.ROOT / "docs" / "benchmarks-dlp.md"
PICTURE: Final = install.ROOT / "docs" / "benchmarks" / "dlp.svg"
OUT: Final = install.ROOT / "bench" / "out"

#: maps each row to its name in the table and a description of what ran
ROWS: Final = {
    "gatehouse": ("Gatehouse, patterns", "the pattern tier as a request meets it: views, validators, context words"),
    "gatehouse_entities": ("Gatehouse, patterns + entities", "the same and the model for names that ships with it"),
    "hyperscan": (
        "Hyperscan {version}",
        "Gatehouse's regexes alone: no views, no validators, no context words. It names those that match and RE2 says"
        " where. Its automaton is compiled ahead, in a minute, and loaded at the start",
    ),
    "gitleaks": (
        "gitleaks' rules",
        "its rules file by RE2, with its keywords, entropy and allow lists, in Python: gitleaks itself is a Go program"
        " that reads repositories. Rules that ask for a file's name find nothing here",
    ),
    "detect_secrets": (
        "detect-secrets {version}",
        "all plugins and default filters, over a file in memory; nothing is verified over the network",
    ),
    "detect_secrets_lines": (
        "detect-secrets {version}, lines as they are",
        "the same without its second pass, which reads a file without a finding once more as configuration, with each"
        " value in quotes",
    ),
    "presidio": (
        "Presidio {version}",
        "its default recognisers for English, with a copy on PyPI of spaCy's small model; the large one, which is its"
        " default, could not be had",
    ),
    "presidio_surer": (
        "Presidio {version}, scores from 0.1",
        "the same without its weakest findings; it keeps them by default",
    ),
    "presidio_patterns": (
        "Presidio {version}, all patterns",
        "every recogniser in the package that needs no model, of all countries, read as English; words are told apart"
        " without a model",
    ),
    "presidio_patterns_surer": (
        "Presidio {version}, all patterns, scores from 0.1",
        "the same without its weakest findings",
    ),
    "llm_guard_secrets": (
        "llm-guard {version}, Secrets",
        "its scanner of that name: detect-secrets' engine with more plugins",
    ),
    "llm_guard_anonymize": (
        "llm-guard {version}, Anonymize",
        "that scanner's regexes and recognisers. Its two models come from a hub and could not be had: it finds no"
        " persons here, and takes less time than with them",
    ),
}
HEADS: Final = {
    "a_detect_secrets": "secrets, detect-secrets' own",
    "a_gitleaks": "secrets, gitleaks' own",
    "a_presidio": "identifiers, Presidio's own",
    "b_presidio_research": "identifiers in sentences",
    "names": "names in sentences",
}
#: The two halves of the picture: the title of each half, and the sets whose mean F1 it shows.
PANELS: Final = {
    "Secrets": ("a_detect_secrets", "a_gitleaks"),
    "Identifiers": ("a_presidio", "b_presidio_research"),
}
PLOTTED_LENGTH: Final = 10_000


def table(run: dict[str, Any]) -> str:
    heads = ["", *(f"F1 {HEADS[title]}" for title in COLUMNS), "false secrets in 1,000 clean texts"]
    heads += [f"us/KB, {length // 1000} KB" for length in LENGTHS]
    heads += [
        "first text of a process, 10 KB",
        f"{PLOTTED_LENGTH // 1000} KB, times ours",
        "memory (MiB)",
        "start (s)",
    ]
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    for row, own in run["rows"].items():
        cells = [_name(row, own["version"])]
        cells += [_f1(own["f1"][title]) for title in COLUMNS]
        cells.append("-" if own["false"] is None else f"{own['false']:.1f}")
        cells += [_short(own[f"us_per_kb_{length}"]) for length in LENGTHS]
        cells.append(_short(own["cold_us_per_kb"]))
        cells += [_short(own[f"ratio_{PLOTTED_LENGTH}"]), f"{own['mib']:.0f}", f"{own['start_s']:.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _f1(figures: list[float | None] | None) -> str:
    """Return the F1 over all labels as text, and in brackets the F1 over the claimed labels if it differs."""
    if figures is None:
        return "-"
    whole, claimed = ("-" if figure is None else f"{figure:.3f}" for figure in figures)
    return whole if whole == claimed else f"{whole} ({claimed})"


def _name(row: str, version: str = "") -> str:
    return ROWS[row][0].format(version=version).replace(" ,", ",").strip()


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def publish(run: dict[str, Any]) -> None:
    """Write the page and its picture. Raises `CalledProcessError` if matplotlib cannot be installed or fails."""
    panels = []
    for title, sets in PANELS.items():
        points = {
            _name(row): (own[f"us_per_kb_{PLOTTED_LENGTH}"], mean(own["f1"][one][0] for one in sets))
            for row, own in run["rows"].items()
            if all(own["f1"][one] for one in sets)
        }
        panels.append({"title": title, "points": points})
    chart = {
        "name": PICTURE.stem,
        "x": f"microseconds of processor a KB (log), texts of {PLOTTED_LENGTH // 1000} KB",
        "y": "F1, mean of two sets",
        "panels": panels,
    }
    python = install.matplotlib(OUT / "env", OUT / "install.log")
    plots = install.ROOT / "bench" / "rig" / "plots.py"
    subprocess.run([str(python), str(plots), str(PICTURE.parent)], input=json.dumps([chart]), text=True, check=True)
    PAGE.write_text(_page(run))


def _page(run: dict[str, Any]) -> str:
    ran = "\n".join(f"| {_name(row, own['version'])} | {ROWS[row][1]} |" for row, own in run["rows"].items())
    return TEMPLATE.format(
        **{**run, "ran": ran, "table": table(run), "picture": f"{PICTURE.parent.name}/{PICTURE.name}"}
    )


TEMPLATE: Final = """\
# DLP beside other finders

Gatehouse's pattern tier, and patterns and entities together, beside other finders of secrets and identifiers, over the
same texts in one run. This page and its picture are written by `python -m bench.dlp.peers`.

Run of {date} on {machine}, shared with other work: ratios say more than microseconds. {rounds} rounds, each with new
processes; each text is timed with one finder after the other; figures are medians of the rounds.

![F1 over cost]({picture})

{table}

- **F1**: a finding is right when it overlaps a place that is asked for and names it: as a secret in the two sets of
  secrets, else by its label. Labels that one of Gatehouse's types covers together (numbers of persons of several
  countries) count as one, for everyone. The first figure is over all that the set asks for; the one in brackets, where
  it differs, over the labels alone that the finder claims to find. `-`: it was not made for the set.
- **False secrets**: findings in 1,070 texts without a secret. Nothing else is judged there.
- **us/KB**: microseconds of processor time for 1,000 characters, in texts of three lengths: the median of prose, code
  and chat, from three places of each (one for 100 KB). Each process has seen these texts before; what its first text
  takes, 10 KB of prose, has a column. Memory is resident, after the run. The start is from nothing to the first
  question.

What to keep in mind:

- Three of the sets are made of the peers' own tests, where each of them is at its best. Gatehouse's patterns were
  developed with these sets at hand, so its figures are no forecast for other texts either. The sentences were made up
  by Presidio's makers, from templates.
- The finders do not do the same work. gitleaks' rules and detect-secrets look for secrets alone and are made for files,
  and a text without a keyword costs gitleaks' rules next to nothing. Gatehouse's 76 patterns look for all kinds at
  once, in decoded views of the text too.
- Gatehouse, Hyperscan and gitleaks' rules search in C++, the others in Python. With entities, and in Presidio's first
  two rows, most of the cost is a model's.
- Of Gatehouse's regexes {too_large_for_hyperscan} are too large for Hyperscan, which takes them as a rough filter.

| | what ran |
|---|---|
{ran}
"""


def main() -> None:
    publish(json.loads((OUT / "dlp-peers.json").read_text()))


if __name__ == "__main__":
    main()
