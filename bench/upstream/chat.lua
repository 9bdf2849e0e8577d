-- The load for wrk: one chat request, again and again.
-- BENCH_HEADERS  headers, one "Name: value" a line
-- BENCH_BODY     the request's body
-- BENCH_KEYS     so many API keys in turn, BENCH_KEY_PREFIX and a number from 1 on
-- BENCH_PAUSE_MS pause of each connection between two requests (a steady load below the limit)
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
for name, value in (os.getenv("BENCH_HEADERS") or ""):gmatch("([^:\n]+): ([^\n]*)") do
  wrk.headers[name] = value
end
wrk.body = os.getenv("BENCH_BODY")

local keys = tonumber(os.getenv("BENCH_KEYS"))
if keys then
  local requests, at = {}, 0
  local prefix = "Bearer " .. os.getenv("BENCH_KEY_PREFIX")
  function request()
    at = at % keys + 1
    if not requests[at] then
      wrk.headers["Authorization"] = prefix .. at
      requests[at] = wrk.format()
    end
    return requests[at]
  end
end

local pause = tonumber(os.getenv("BENCH_PAUSE_MS"))
if pause then
  -- Jitter, or all connections would ask in the same instant.
  function delay() return math.floor(pause * (0.5 + math.random()) + 0.5) end
end

function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    'RESULT {"requests":%d,"seconds":%.6f,"bytes":%d,"p50_us":%d,"p99_us":%d,"max_us":%d,"refused":%d,"broken":%d}\n',
    summary.requests, summary.duration / 1e6, summary.bytes, latency:percentile(50), latency:percentile(99),
    latency.max, e.status, e.connect + e.read + e.write + e.timeout))
end
