"""Errors of the compliance bundles family."""

from gatehouse.foundation.errors import BadRequest, Conflict, NotFound


class BundleNotFound(NotFound):
    message = "Compliance bundle not found"


class InvalidBundleId(BadRequest):
    message = "Invalid bundle_id format"


class BundleNameTaken(Conflict):
    code = "bundle_name_taken"

    def __init__(self, name: str) -> None:
        super().__init__(f"A compliance bundle named {name!r} already exists.")


class TooManyBundles(Conflict):
    code = "too_many_bundles"
    message = "The organization has the maximum number of compliance bundles. Remove some first."


class DuplicateBundleName(Conflict):
    code = "bundle_name_twice"

    def __init__(self, name: str) -> None:
        super().__init__(f"The file contains two bundles named {name!r}.")
