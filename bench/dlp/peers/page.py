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
    "gatehouse": ("Gatehouse, patterns", "the pattern tier as it inspects a request: views, validators, context words"),
    "gatehouse_entities": ("Gatehouse, patterns + entities", "the same, and the embedded model that finds names"),
    "hyperscan": (
        "Hyperscan {version}",
        "Gatehouse's regexes alone: no views, no validators, no context words. Hyperscan returns those that match,"
        " and RE2 finds the positions. The automaton is compiled in advance, and loaded at the start",
    ),
    "gitleaks": (
        "gitleaks' rules",
        "the regexes, keywords, entropy limits and allow lists of its rules file, run in Python with RE2, because"
        " gitleaks is a Go program that reads repositories. Rules that need a file's path find nothing here",
    ),
    "detect_secrets": (
        "detect-secrets {version}",
        "all plugins and default filters, over a file in memory; nothing is verified over the network",
    ),
    "detect_secrets_lines": (
        "detect-secrets {version}, line by line",
        "the same without its second pass. If a file has no finding, that pass reads it again, as configuration with"
        " each value in quotes",
    ),
    "presidio": (
        "Presidio {version}",
        "its default recognisers for English, with spaCy's small model, from a copy on PyPI. Presidio's default, the"
        " large model, could not be installed",
    ),
    "presidio_surer": (
        "Presidio {version}, scores from 0.1",
        "the same without its weakest findings; it keeps them by default",
    ),
    "presidio_patterns": (
        "Presidio {version}, all patterns",
        "the package's recognisers of all countries, except those that need a model, registered for English; words are"
        " split without a model",
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
        "that scanner's regexes and recognisers, without its two models, which could not be downloaded. So it finds no"
        " persons here, and takes less time than with the models",
    ),
}
HEADS: Final = {
    "a_detect_secrets": "secrets, detect-secrets' tests",
    "a_gitleaks": "secrets, gitleaks' tests",
    "a_presidio": "identifiers, Presidio's tests",
    "b_presidio_research": "identifiers in sentences",
    "names": "names in sentences",
}
#: The two halves of the picture: the title of each half, and the sets whose mean F1 it shows.
PANELS: Final = {
    "Secrets": ("a_detect_secrets", "a_gitleaks"),
    "Identifiers": ("a_presidio", "b_presidio_research"),
}
PLOTTED_CHARACTERS: Final = 10_000


def table(run: dict[str, Any]) -> str:
    heads = ["", *(f"F1 {HEADS[title]}" for title in COLUMNS), "false secrets in 1,000 clean texts"]
    heads += [f"us/KB, {length // 1000} KB" for length in LENGTHS]
    heads += [
        "first text of a process, 10 KB",
        f"{PLOTTED_CHARACTERS // 1000} KB, ratio to Gatehouse",
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
        cells += [_short(own[f"ratio_{PLOTTED_CHARACTERS}"]), f"{own['mib']:.0f}", f"{own['start_s']:.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _f1(figures: list[float | None] | None) -> str:
    """Format the F1 over all labels. The F1 over the labels that the tool claims to find follows in brackets, if it
    differs."""
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
            _name(row): (own[f"us_per_kb_{PLOTTED_CHARACTERS}"], mean(own["f1"][one][0] for one in sets))
            for row, own in run["rows"].items()
            if all(own["f1"][one] for one in sets)
        }
        panels.append({"title": title, "points": points})
    chart = {
        "name": PICTURE.stem,
        "x": f"processor time per KB in microseconds (log), texts of {PLOTTED_CHARACTERS // 1000} KB",
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
# DLP compared with other tools

This page compares Gatehouse's pattern tier, alone and together with the entities tier, with other tools that find
secrets and identifiers. All tools read the same texts in one run. `python -m bench.dlp.peers --publish` writes this
page and its picture.

Run of {date} on {machine}, shared with other work: ratios say more than microseconds. {rounds} rounds, each with new
processes; each text is timed with one tool after the other; figures are medians of the rounds.

![F1 over cost]({picture})

{table}

- **F1**: a finding is right if it overlaps a labelled span and has the label of the span. In the two sets of secrets,
  it only has to be a secret. If one of Gatehouse's types covers several labels (for example the national identity
  numbers of several countries), these labels count as one, for all tools. The first figure is over all labels of the
  set. The figure in brackets, if it differs, is over only those labels that the tool claims to find. `-`: the tool
  claims to find no label of the set.
- **False secrets**: findings of secrets per 1,000 texts, in 1,070 texts without a secret. Other findings are not judged
  there.
- **us/KB**: microseconds of processor time for 1,000 characters, in texts of three lengths. It is the median of prose,
  code and chat, with three texts of each (one of 100 KB). Each process has scanned these texts before. The time of its
  first text, 10 KB of prose, has a column of its own. Memory is the resident memory after the run. Start is the time
  from the start of the process until it accepts the first text.

What to keep in mind:

- Three of the sets are made of the other tools' own tests, where each of these tools is at its best. Gatehouse's
  patterns were developed with the same sets. So no figure, not even Gatehouse's, predicts the result for other texts.
  The sentences of the two columns *in sentences* were generated by Presidio's authors from templates.
- The tools do not do the same work. gitleaks' rules and detect-secrets look for secrets alone and are made for files,
  and a text without a keyword costs gitleaks' rules next to nothing. Gatehouse's 76 patterns look for all kinds at
  once, in decoded views of the text too.
- Gatehouse, Hyperscan and gitleaks' rules search in C++, the others in Python. In the row with entities, and in
  Presidio's first two rows, a model takes most of the time.
- {too_large_for_hyperscan} of Gatehouse's regexes are too large for Hyperscan. It only reports that they may match, and
  RE2 then decides.

| | what ran |
|---|---|
{ran}
"""


def main() -> None:
    publish(json.loads((OUT / "dlp-peers.json").read_text()))


if __name__ == "__main__":
    main()
