"""Which fields of a model call go on to a provider.

A provider that speaks the client's dialect receives the client's fields as they are. `tables` says which of them are
ordinary, and which name another model, send content elsewhere, keep it, or change the price; `naming` finds in a body
what is not ordinary. Each kind of provider names its table (`providers.wires`), and the stage `request_fields` refuses
what the organization has not allowed.
"""
