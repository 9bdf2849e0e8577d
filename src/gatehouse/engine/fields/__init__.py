"""Classifies the fields of a model call that are sent to a provider.

A provider that speaks the client's dialect receives the client's fields unchanged. `tables` lists the ordinary fields.
It also lists the fields that name another model, send content elsewhere, store it, or change the price. `naming` finds
the fields of a body that are not ordinary. Each kind of provider has a table (`providers.wires`), and the stage
`request_fields` refuses fields that the organization has not allowed.
"""
