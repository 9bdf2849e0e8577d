"""Bodies of the endpoints of the sampling setting."""

from typing import Annotated

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, ResponseBody, omitted
from gatehouse.platform.organization.tenants.sources import Sources

Share = Annotated[
    float, Field(ge=0, le=1, description="Share of model calls that are sampled. 0 means none.", examples=[0.05])
]
RetentionDays = Annotated[int, Field(ge=1, le=90, description="Days after which a sample is deleted.", examples=[30])]


class DlpSamplingUpdate(Body):
    """A partial update: omitted fields keep their values."""

    share: Annotated[Share, Field(default_factory=omitted)]
    retention_days: Annotated[RetentionDays, Field(default_factory=omitted)]


class DlpSampling(ResponseBody):
    share: Share
    retention_days: RetentionDays
    sources: Annotated[Sources, Field(examples=[{"share": "organization", "retention_days": "default"}])]
