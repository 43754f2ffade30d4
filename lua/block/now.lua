-- Reads Redis's clock: now in ms since 1970. A script calls TIME at most once.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
