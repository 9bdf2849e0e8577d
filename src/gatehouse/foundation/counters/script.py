"""What Redis runs for a request: one call, one look at Redis's own clock, all claims or none."""

import hashlib

from gatehouse.foundation.counters import BUCKET, WINDOW

# A key is a list of buckets, oldest first. A bucket is four numbers: how many requests the key was admitted before it
# and with it, and when (microseconds) its first and its last one were. So what the window holds is the difference
# between its two ends, and a take touches nothing in between.
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
    -- A clock that was set back stands still until it has caught up.
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
    -- The only bucket just moved its end.
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
    """The text for a window of so many seconds, and the name that Redis knows it by once loaded.

    KEYS are the keys, ARGV their limits. Returns allowed (0 or 1), the index of the claim that the rest speaks of, how
    many requests its window holds now, and microseconds until the next slot comes free.
    """

    def __init__(self, window: float = WINDOW) -> None:
        self.source = _SOURCE.format(
            window=round(window * 1_000_000),
            bucket=round(min(BUCKET, window / 600) * 1_000_000),
            # A second more than the window: what Redis drops by itself must never count any more.
            keep=round(window * 1000) + 1000,
        )
        self.sha = hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()
