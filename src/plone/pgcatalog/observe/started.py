"""When this process began: apart from the recorder, which a command that only reads the log does not need."""

from datetime import datetime
from datetime import UTC


STARTED = datetime.now(UTC)
