-- Appends to an agent's audit trail: what happened, when, who did it and in which request. More follows in pairs of name
-- and value. audit is '<cap> <actor> <request id>': about how many events are kept; 'key' or 'agent'; the request's id.
local function record(events, audit, now, what, ...)
  local cap, actor, request = string.match(audit, '^(%d+) (%a+) (.*)$')
  redis.call('XADD', events, 'MAXLEN', '~', cap, '*', 'type', what, 'at', string.format('%d', now), 'actor', actor,
    'request', request, ...)
end
