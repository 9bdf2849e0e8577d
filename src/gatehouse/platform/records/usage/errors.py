"""Errors of the usage endpoints."""

from gatehouse.foundation.errors import BadRequest, NotFound
from gatehouse.platform.records.by_day import MAX_SORTED_RECORDS


class UsageRecordNotFound(NotFound):
    message = "Usage record not found"


class TooManyRecordsToSort(BadRequest):
    code = "too_many_records_to_sort"
    message = (
        f"sort: more than {MAX_SORTED_RECORDS:,} records match, and so many can only be sorted by time. Set a shorter"
        " period or more filters, or sort by timestamp."
    )
