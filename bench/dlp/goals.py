"""Defines for each set how it is scored, and its goal."""

from typing import Final, NamedTuple

from bench.dlp.labels import STRUCTURED
from bench.dlp.scoring import Level


class Goal(NamedTuple):
    level: Level
    #: minimum F1
    f1: float | None = None
    #: maximum texts with a false finding, instead of an F1
    alarms: int | None = None
    #: labels that are judged; all labels if it is empty
    only: tuple[str, ...] = ()


GOALS: Final[dict[str, Goal]] = {
    "a_detect_secrets": Goal("category", f1=0.94),
    "a_gitleaks": Goal("category", f1=0.95),
    "a_leaky_repo": Goal("category", f1=0.80),
    "a_presidio": Goal("label", f1=0.96),
    "b_presidio_research": Goal("label", f1=0.96, only=STRUCTURED),
    "b_presidio_research_large": Goal("label", only=STRUCTURED),
    "a_clean_text": Goal("category", alarms=0),
    "a_clean_code": Goal("category", alarms=1),
}


def reached(goal: Goal, f1: float | None, alarms: int, texts: int) -> str:
    if goal.alarms is not None:
        return f"{alarms} of {texts} with a false finding, goal {goal.alarms}: {_mark(alarms <= goal.alarms)}"
    return "" if goal.f1 is None else f"{goal.f1:.2f}: {_mark((f1 or 0) >= goal.f1)}"


def _mark(is_reached: bool) -> str:
    return "reached" if is_reached else "MISSED"
