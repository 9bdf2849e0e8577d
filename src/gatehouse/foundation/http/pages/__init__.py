"""HTML pages of the platform and the portal, with one design and one content security policy.

Pages are rendered on the server with Jinja2. They use forms and no scripts. The content security policy (`headers`)
allows only content of the package. Each deployable has one `Pages` for its templates, an error format
(`errors.error_format`) and a route for static files (`files.route`).
"""

from gatehouse.foundation.http.pages.rendering import Pages, headers

__all__ = ["Pages", "headers"]
