"""The Lua script that Redis runs for each request. It reads Redis's clock once and counts all claims or none."""

import hashlib

from gatehouse.foundation.counters import BUCKET_SECONDS, WINDOW_SECONDS

# A key is a list of buckets, oldest first. A bucket is four numbers: the key's admissions before it, the admissions up
# to and with it, and the times (microseconds) of its first and last admission. The number of requests in the window is
# the difference between its two ends, so a take reads no bucket in between.
_SOURCE = """
local WINDOW, BUCKET, KEEP = {window}, {bucket}, {keep}
local time = redis.call('TIME')
local clock = time[1] * 1000000 + time[2]
local tightest, least, seen = 1, nil, {{}}

for i, key in ipairs(KEYS) do
  local limit, now = tonumber(ARGV[i]), clock
  local view = {{used = 0, total = 0, opened = 0}}
  local tail = redis.call('LINDEX', key, -1)
  if tail then
    local _, total, opened, last = struct.unpack('<dddd', tail)
    -- If the clock was set back, use the time of the last admission until the clock has passed it.
    if last > now then now = last end
    view.total, view.opened = total, opened
    local head, before, after, ended = redis.call('LINDEX', key, 0)
    while head do
      before, after, _, ended = struct.unpack('<dddd', head)
      if ended + WINDOW > now then break end
      redis.call('LPOP', key)
      head = redis.call('LINDEX', key, 0)
    end
    if head then
      view.used, view.oldest, view.live = total - before, ended, true
      if view.used >= limit then
        local frees = ended
        if total - after >= limit then
          for _, bucket in ipairs(redis.call('LRANGE', key, 0, -1)) do
            _, after, _, frees = struct.unpack('<dddd', bucket)
            if total - after < limit then break end
          end
        end
        return {{0, i - 1, view.used, frees + WINDOW - now}}
      end
    end
  end
  view.now = now
  seen[i] = view
  if least == nil or limit - view.used < least then tightest, least = i, limit - view.used end
end

for i, key in ipairs(KEYS) do
  local view = seen[i]
  if view.live and view.now - view.opened < BUCKET then
    local before = struct.unpack('<d', redis.call('LINDEX', key, -1))
    redis.call('LSET', key, -1, struct.pack('<dddd', before, view.total + 1, view.opened, view.now))
    -- The end of the only bucket has moved.
    if redis.call('LLEN', key) == 1 then view.oldest = view.now end
  else
    if not view.live then view.total, view.oldest = 0, view.now end
    redis.call('RPUSH', key, struct.pack('<dddd', view.total, view.total + 1, view.now, view.now))
  end
  redis.call('PEXPIRE', key, KEEP)
end
local view = seen[tightest]
return {{1, tightest - 1, view.used + 1, view.oldest + WINDOW - view.now}}
"""


class Script:
    """The script's source for a window in seconds, and the SHA-1 by which Redis runs it once loaded.

    KEYS are the keys, ARGV their limits. The script returns allowed (0 or 1), the index of the claim that the other
    values describe, the requests in its window, and microseconds until the next slot becomes free.
    """

    def __init__(self, window: float = WINDOW_SECONDS) -> None:
        self.source = _SOURCE.format(
            window=round(window * 1_000_000),
            bucket=round(min(BUCKET_SECONDS, window / 600) * 1_000_000),
            # One second more than the window, so that Redis does not expire a key whose requests still count.
            keep=round(window * 1000) + 1000,
        )
        self.sha = hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()
