"""Bodies shared by the replay endpoints."""

from typing import Annotated

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, ResponseBody


class Recorded(Body):
    """Selects the newest samples of the organization's own requests."""

    last: Annotated[
        int, Field(ge=1, le=1_000, description="Maximum number of samples, up to 10 million characters in total.")
    ] = 200
    days: Annotated[int | None, Field(ge=1, le=90, description="Maximum age in days.")] = None
    labelled: Annotated[
        bool | None,
        Field(
            description="True: only samples with labels for this kind of draft. False: only samples without"
            " such labels."
        ),
    ] = None


class Measured(ResponseBody):
    """Scores of the draft on labelled samples, and of the active rules (`_now`). Precision or recall is null if its
    divisor is zero."""

    right: Annotated[int, Field(description="True positives: named by the label and by the draft.")]
    wrong: Annotated[int, Field(description="False positives: named by the draft, not by the label.")]
    missed: Annotated[int, Field(description="False negatives: named by the label, not by the draft.")]
    precision: float | None
    recall: float | None
    right_now: int
    wrong_now: int
    missed_now: int
    precision_now: float | None
    recall_now: float | None


class Differences(ResponseBody):
    """Numbers of samples for which the draft's decision is stricter than, weaker than or the same as the active
    decision."""

    stricter: int
    weaker: int
    same: int


class ReplaySummary(ResponseBody):
    samples: Annotated[int, Field(description="Number of evaluated samples.")]
    complete: Annotated[bool, Field(description="False if the time limit ended the replay before the last sample.")]
    differences: Differences
    changed: Annotated[
        list[str | int],
        Field(
            description="Ids of the samples for which the draft's decision differs from the recorded decision. If none"
            " was recorded, it is compared with the active decision."
        ),
    ]
    labelled: Annotated[int, Field(description="Number of samples with labels for this kind of draft.")]
