-- Reads Redis's clock: now in ms since 1970. A script calls TIME at most once.
-- Sets milliseconds, now, time.
local time = redis.call('TIME')
local milliseconds = time[2] / 1000
local now = time[1] * 1000 + (milliseconds - milliseconds % 1)
