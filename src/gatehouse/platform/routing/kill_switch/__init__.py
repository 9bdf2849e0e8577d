"""The kill switch stops a model, or all models of a provider, at once (docs/kill-switch.md).

    enabled  <-> disabled     POST disable (with a reason), POST enable; for one model, or for a provider

Each model has a state of its own, and so has each provider. A provider's switch applies to all of its models, including
models that are added later. Releasing the provider also releases its models. Disabling again keeps the time of the
first call and replaces the reason. The call waits at most two seconds for the confirmations of all live workers, and
returns the names of the workers that have not confirmed. A worker that has confirmed sends no new request to the model.
"""
