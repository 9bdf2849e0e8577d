"""The platform's background jobs and the objects that they use."""

from typing import Final

import msgspec

from gatehouse.administration.jobs import Jobs
from gatehouse.foundation.clock import Clock
from gatehouse.foundation.mail.sending import MailNotSent
from gatehouse.foundation.metrics import Counter
from gatehouse.foundation.outbound import Outbound
from gatehouse.foundation.outbound.receivers import Receivers
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.foundation.settings import Settings
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.metrics import notifications


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of the process that a job can use."""

    settings: Settings
    database: Database
    sealer: Sealer
    outbound: Outbound
    clock: Clock
    #: HTTP client for the receivers of webhooks and alerts
    receivers: Receivers
    #: counter of the results of these notifications; a process that publishes metrics passes its own
    notifications: Counter = msgspec.field(default_factory=notifications)


#: The registered jobs. `keeper.duties.MODULES` lists the modules that register them.
JOBS: Final = Jobs[Tools](expected=(MailNotSent,))
