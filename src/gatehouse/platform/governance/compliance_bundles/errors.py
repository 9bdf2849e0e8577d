"""What can go wrong with compliance bundles."""

from gatehouse.foundation.errors import BadRequest, Conflict, NotFound


class BundleNotFound(NotFound):
    message = "Compliance bundle not found"


class InvalidBundleId(BadRequest):
    message = "Invalid bundle_id format"


class BundleNameTaken(Conflict):
    code = "bundle_name_taken"

    def __init__(self, name: str) -> None:
        super().__init__(f"There is a compliance bundle called {name!r} already.")


class NameTwice(Conflict):
    code = "bundle_name_twice"

    def __init__(self, name: str) -> None:
        super().__init__(f"The file holds two bundles called {name!r}.")
