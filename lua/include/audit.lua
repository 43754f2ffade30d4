-- Appends to an agent's audit trail: what happened, when, who did it and in which request. More follows in pairs of name
-- and value. audit is '<cap> <actor> <request id>': about how many events are kept; 'key', 'agent', 'session_key' or 'time'; the request's id.
local function record(events, audit, now, what, ...)
  local cap, actor, request = string.match(audit, '^(%d+) (%S+) (.*)$')
  redis.call('XADD', events, 'MAXLEN', '~', cap, '*', 'type', what, 'at', string.format('%d', now), 'actor', actor,
    'request', request, ...)
end

-- Returns audit for what time alone has done: the request that finds it first did not do it.
local function by_time(audit)
  return string.match(audit, '^%d+') .. ' time '
end
