"""The response of a sign-out at the API."""

from typing import Annotated

from pydantic import Field

from gatehouse.foundation.http.bodies import ResponseBody


class SignedOut(ResponseBody):
    by_identity_provider: Annotated[
        bool, Field(description="Whether the session was opened by single sign-on, so that the provider may have one.")
    ]
    provider_logout_url: Annotated[
        str | None,
        Field(
            description="Where the browser signs out at the identity provider, once, within minutes. Null if the"
            " provider has no `slo_url` or is not active."
        ),
    ]
