"""What the bodies of replays have in common."""

from typing import Annotated

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, Shown


class Recorded(Body):
    """Which samples of the organization's own requests: the newest."""

    last: Annotated[int, Field(ge=1, le=1_000, description="At most so many, and 10 million characters.")] = 200
    days: Annotated[int | None, Field(ge=1, le=90, description="Not older than this.")] = None
    labelled: Annotated[
        bool | None, Field(description="Only those with labels of this kind of draft, or only those without.")
    ] = None


class Measured(Shown):
    """Labelled samples, by what the draft says of them, and by what is in force. Null: there are none to divide by."""

    right: Annotated[int, Field(description="The label says so, and so does the draft.")]
    wrong: Annotated[int, Field(description="The draft says so, and the label does not.")]
    missed: Annotated[int, Field(description="The label says so, and the draft does not.")]
    precision: float | None
    recall: float | None
    right_now: int
    wrong_now: int
    missed_now: int
    precision_now: float | None
    recall_now: float | None


class Differences(Shown):
    """Samples, by what the draft does beside what is in force."""

    stricter: int
    weaker: int
    same: int


class ReplaySummary(Shown):
    samples: Annotated[int, Field(description="How many were looked at.")]
    complete: Annotated[bool, Field(description="False where time ran out: the rest was not looked at.")]
    differences: Differences
    changed: Annotated[
        list[str | int],
        Field(
            description="Ids of samples about which the draft decides otherwise than was decided then; where that is"
            " not known, otherwise than what is in force."
        ),
    ]
    labelled: Annotated[int, Field(description="How many of the samples have labels of this kind of draft.")]
