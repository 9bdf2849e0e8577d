"""Bedrock's lists of models, and of the inference profiles through which models of several regions are called."""

from collections.abc import Mapping, Sequence

import msgspec

from gatehouse.engine.providers.bedrock.embeddings import makes_embeddings
from gatehouse.engine.providers.bedrock.signing import query_value
from gatehouse.engine.providers.failure import ProviderFailed
from gatehouse.engine.providers.kind import ProviderModel
from gatehouse.engine.providers.wires import fetch
from gatehouse.foundation.outbound import Outbound
from gatehouse.policy.catalog import ProviderRecord

#: Maximum number of pages of profiles.
MAX_PAGES = 10


class _Model(msgspec.Struct, rename="camel"):
    model_id: str
    model_name: str | None = None
    input_modalities: list[str] = []
    output_modalities: list[str] = []
    response_streaming_supported: bool | None = None
    inference_types_supported: list[str] = []

    @property
    def is_supported(self) -> bool:
        return "TEXT" in self.output_modalities or makes_embeddings(self.model_id)

    def to_provider_model(self, model_id: str, name: str | None) -> ProviderModel:
        return ProviderModel(
            model_id=model_id,
            display_name=name,
            supports_vision="IMAGE" in self.input_modalities if self.input_modalities else None,
            supports_streaming=self.response_streaming_supported,
        )


class _FoundationModels(msgspec.Struct, rename="camel"):
    model_summaries: list[_Model]


class _Member(msgspec.Struct, rename="camel"):
    model_arn: str = ""


class _Profile(msgspec.Struct, rename="camel"):
    inference_profile_id: str
    inference_profile_arn: str = ""
    inference_profile_name: str | None = None
    models: list[_Member] = []
    status: str = "ACTIVE"
    type: str = "SYSTEM_DEFINED"

    @property
    def model(self) -> str:
        """The id of the profile's model. All models of a profile have the same id, in different regions."""
        return self.models[0].model_arn.rpartition("/")[2] if self.models else ""

    @property
    def callable_id(self) -> str:
        """The id for calls. A customer's own profiles are called by their ARN."""
        return self.inference_profile_arn if self.type == "APPLICATION" else self.inference_profile_id


class _Profiles(msgspec.Struct, rename="camel"):
    inference_profile_summaries: list[_Profile]
    next_token: str | None = None


async def list_callable_models(
    outbound: Outbound, base: str, headers: Mapping[str, str], record: ProviderRecord
) -> Sequence[ProviderModel]:
    """Return the models that can be called by their id, and the active profiles of supported models. Raises
    `ProviderFailed`."""
    listed = await fetch(outbound, f"{base}/foundation-models", headers, record, _FoundationModels)
    supported = {model.model_id: model for model in listed.model_summaries if model.is_supported}
    models = [
        model.to_provider_model(model.model_id, model.model_name)
        for model in supported.values()
        if "ON_DEMAND" in model.inference_types_supported
    ]
    try:
        profiles = await _profiles(outbound, base, headers, record)
    except ProviderFailed as failed:
        # Listing profiles needs a permission of its own, which some accounts do not grant.
        if failed.reason != "unauthorized":
            raise
        profiles = []
    return models + [
        supported[profile.model].to_provider_model(profile.callable_id, profile.inference_profile_name)
        for profile in profiles
        if profile.status == "ACTIVE" and profile.model in supported
    ]


async def _profiles(
    outbound: Outbound, base: str, headers: Mapping[str, str], record: ProviderRecord
) -> Sequence[_Profile]:
    url = f"{base}/inference-profiles?maxResults=1000"
    profiles: list[_Profile] = []
    token: str | None = None
    for _ in range(MAX_PAGES):
        page_url = f"{url}&nextToken={query_value(token)}" if token else url
        page = await fetch(outbound, page_url, headers, record, _Profiles)
        profiles += page.inference_profile_summaries
        token = page.next_token
        if not token:
            break
    return profiles
