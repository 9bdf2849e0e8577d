"""Single sign-on by SAML 2.0: this platform is a service provider, organizations name their identity providers
(reference 2, SAML identity provider).

    active  <-> inactive     PUT is_active; inactive ones start and finish no sign-in, open sessions go on
    either   -> removed      DELETE

A sign-in, from the browser's side:

    GET /api/saml/login   a request is written down and signed; the browser carries it to the identity provider
    POST /api/saml/acs    the answer comes back: the first to that request, from that provider, in that browser
    GET /api/saml/slo     signing out, begun here (`logout.leave`) or there

    service_provider   who we are: entity id and addresses
    keys               what we sign with, and its rotation
    messages           what we write
    trust              from bytes to an assertion that is signed: form, signature
    assertion          what it says, and whether it is said to us, now
    sign_in, members   what follows from it: a session, perhaps a user, groups
    logout             both ways
"""
