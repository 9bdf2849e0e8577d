"""The page `/docs`: Swagger UI from the installed package. The page's content security policy permits only scripts of
this server, and no inline scripts.

Nothing is loaded from a CDN: the page works offline, and no third party can change the scripts that run in an
administrator's browser. The document is the application's `/openapi.json`.
"""

from functools import cache
from typing import Final

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from swagger_ui_bundle import swagger_ui_path

from gatehouse.foundation.errors import NotFound
from gatehouse.foundation.http.documentation.openapi30 import downgraded

SECURITY_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

_ASSETS: Final = {
    "swagger-ui.css": "text/css",
    "index.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
    "favicon-32x32.png": "image/png",
}

#: `base` is the path prefix under which a proxy serves the application
_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>{title}</title>
    <link rel="stylesheet" href="{base}/docs/swagger-ui.css">
    <link rel="stylesheet" href="{base}/docs/index.css">
    <link rel="icon" type="image/png" href="{base}/docs/favicon-32x32.png">
  </head>
  <body>
    <div id="swagger-ui" data-document="{base}/docs/openapi.json"></div>
    <script src="{base}/docs/swagger-ui-bundle.js"></script>
    <script src="{base}/docs/start.js"></script>
  </body>
</html>
"""

_START: Final = """"use strict";
const place = document.getElementById("swagger-ui");
SwaggerUIBundle({
  url: place.dataset.document,
  domNode: place,
  deepLinking: true,
  docExpansion: "none",
  filter: true,
  persistAuthorization: false,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
});
"""


def install(app: FastAPI) -> None:
    """Adds the page to the application. Create the application with `docs_url=None, redoc_url=None`. Its
    `/openapi.json` is not changed."""

    async def page(request: Request) -> Response:
        base = request.scope.get("root_path", "")
        return _response(_PAGE.format(title=_escape(app.title), base=_escape(base)).encode(), "text/html")

    async def document(request: Request) -> Response:
        return JSONResponse(downgraded(app.openapi()), headers=SECURITY_HEADERS)

    async def start(request: Request) -> Response:
        return _response(_START.encode(), "text/javascript")

    async def asset(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _ASSETS:
            raise NotFound
        return _response(_asset(name), _ASSETS[name], {"Cache-Control": "public, max-age=86400"})

    app.add_route("/docs", page, include_in_schema=False)
    app.add_route("/docs/openapi.json", document, include_in_schema=False)
    app.add_route("/docs/start.js", start, include_in_schema=False)
    app.add_route("/docs/{name}", asset, include_in_schema=False)


@cache
def _asset(name: str) -> bytes:
    content: bytes = (swagger_ui_path / name).read_bytes()
    return content


def _response(body: bytes, media_type: str, headers: dict[str, str] | None = None) -> Response:
    return Response(body, media_type=media_type, headers={**SECURITY_HEADERS, **(headers or {})})


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
