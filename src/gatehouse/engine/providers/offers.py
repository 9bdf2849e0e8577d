"""Errors for operations that a provider does not offer."""

from gatehouse.engine.conversation.operations import OPERATIONS, Operation
from gatehouse.engine.providers.kind import NoEmbeddings, NotOffered
from gatehouse.policy.catalog import Candidate


def not_offered(operation: Operation, candidate: Candidate) -> NotOffered:
    """Return the error for an operation that the candidate's provider does not offer."""
    if operation == "embeddings":
        return NoEmbeddings()
    traits, provider = OPERATIONS[operation], candidate.provider
    return NotOffered(
        f"The provider {provider.id} ({provider.kind}) does not offer {traits.title} ({traits.paths})."
        " Name a model of another provider."
    )


def not_listed(operation: Operation, candidate: Candidate) -> NotOffered:
    """Return the error for an operation that the catalog excludes for the candidate's model."""
    traits = OPERATIONS[operation]
    return NotOffered(
        f"The catalog says that the model {candidate.provider.id}/{candidate.model.model_id} does not offer"
        f" {traits.title} ({traits.paths}): its capability `{traits.use}` is false. Name another model."
    )
