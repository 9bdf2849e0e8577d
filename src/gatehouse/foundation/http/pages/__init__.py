"""Pages that people see in a browser, on the platform and on the portal: one look, one policy.

Rendered here, with Jinja2 and without a script: what a page does, a form does. A policy lets nothing in that does not
come from the package (`headers`). A deployable has one `Pages` over its own templates, its error form (`errors.form`)
and the route of the files that its pages name (`files.route`).
"""

from gatehouse.foundation.http.pages.rendering import Pages, headers

__all__ = ["Pages", "headers"]
