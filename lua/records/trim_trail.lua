-- Trims an agent's audit trail to as many events as are kept, but only of events that its organization's feed has.
--
-- KEYS[1] = events         stream ev:{cell}:<agent>
--
-- ARGV[1] = kept           how many events
-- ARGV[2] = cursor         id of the agent's last event in the feed, which stays
--
-- Reply:  {'ok', left}     events that are too many and in the feed; at most 500 go in one call
-- Writes: XTRIM events
local events = KEYS[1]
local kept, cursor = ARGV[1], ARGV[2]

local length = redis.call('XLEN', events)
local excess = length - kept
if excess <= 0 then
  return {'ok', '0'}
end
local fed = #redis.call('XRANGE', events, '-', '(' .. cursor, 'COUNT', math.min(excess, 501))
local gone = math.min(fed, 500)
redis.call('XTRIM', events, 'MAXLEN', string.format('%.0f', length - gone))
return {'ok', string.format('%.0f', fed - gone)}
