"""Single sign-on by SAML 2.0 (docs/saml.md). This platform is the service provider; organizations configure their
identity providers.

    active  <-> inactive     PUT is_active; an inactive provider can neither start nor finish a sign-in; open sessions
                             continue
    either   -> removed      DELETE

The steps of a sign-in in the browser:

    GET /api/saml/login   stores and signs a request; the browser carries it to the identity provider
    POST /api/saml/acs    accepts the first response to that request, from that provider, in that browser
    GET /api/saml/slo     signs out, started here (`logout.logout_request_url`) or at the provider

    service_provider   entity id and addresses of this platform
    keys               signing keys and their rotation
    messages           the messages that this platform writes
    trust              turns bytes into a signed assertion: checks form and signature
    assertion          reads the assertion and checks audience and validity
    sign_in, members   open a session, create users, synchronize groups
    logout             single logout in both directions
"""
