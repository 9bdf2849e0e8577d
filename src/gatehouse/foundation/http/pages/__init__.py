"""HTML pages of the platform and the portal, with one design and one content security policy.

Pages are rendered on the server with Jinja2 and work through forms, without scripts. The policy allows only content of
the package (`headers`). Each deployable has one `Pages` for its templates, an error form (`errors.form`) and a route
for static files (`files.route`).
"""

from gatehouse.foundation.http.pages.rendering import Pages, headers

__all__ = ["Pages", "headers"]
