"""The kill switch stops a model, or all models of a provider, at once (docs/kill-switch.md).

    enabled  <-> disabled     POST disable (with a reason), POST enable; for one model, or for a provider

Each model has a state of its own, and so has each provider. A provider's switch covers all of its models, including
those that are added later; it may be engaged before there are any. It ends only when the provider is released, which
also releases its models. Disabling again keeps the time of the first call and takes the new reason. The call returns
when every live worker has confirmed the change, or names those that have not; a worker that has confirmed sends no new
request to the model.
"""
