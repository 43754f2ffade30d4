-- Appends events to an organization's feed, and notes up to where the trails of their agents are in it. Both or none: so
-- an event is in the feed once, whatever leader is cut off.
--
-- KEYS[1] = head           hash oeh:{cell}:<organization>
-- KEYS[2] = feed           stream oe:{cell}:<organization>
-- KEYS[3] = cursors        hash oec:{cell}:<organization>
-- KEYS[4] = marked         zset oem:{cell}:<organization>
-- KEYS[5] = taken          zset oet:{cell}:<organization>
-- KEYS[6] = webhooks       hash ow:{cell}:<organization>
-- KEYS[7] = due            zset odu:{cell}:<organization>
--
-- ARGV[1] = token          of the leader
-- ARGV[2] = lease          ms
-- ARGV[3] = last           number of the event before them, 0 for none
-- ARGV[4] = hash           of the last of them, in hex; '' for no events
-- ARGV[5] = entries        the events, in lines of type, a space and JSON
-- ARGV[6] = agents         lines of '<agent> <cursor or -> <more>': the id of its last event in the feed, - for unchanged;
--                          more is 1 when its trail has more events, else 0
-- ARGV[7] = kept           how many events the feed keeps at the most
-- ARGV[8] = room           bytes that they may take, as b counts them: 64 for each beside its JSON
-- ARGV[9] = due_entries    what is due after these events, with its times, see include/due.lua
--
-- Arguments: the leader's state, and what it appends; one command is all or nothing.
--
-- Reply:  {'ok', last_number, wakes, now, due_from}
--             number of the last event; wakes is '1' when the organization's webhooks are to be woken, else '';
--                          now in ms since 1970; due_from as in include/lead.lua
--         {'feed_lost'}    another one leads, or the feed ends with another event
-- Writes: XADD and XTRIM feed, HSET head and cursors, ZREM taken, ZADD marked; ZADD and ZREM due
--@include due
local head, feed, cursors, marked, taken, webhooks, due = unpack(KEYS)
local token, lease, last, hash, entries, agents, kept, room, due_entries = unpack(ARGV)

--@block now
--@read head last_number head_token first_number bytes due_from
if head_token ~= token or (last_number or '0') ~= last then
  return {'feed_lost'}
end
last_number, first_number, bytes = last + 0, (first_number or 1) + 0, (bytes or 0) + 0
for what, event in string.gmatch(entries, '(%S+) ([^\n]*)\n') do
  last_number = last_number + 1
  redis.call('XADD', feed, string.format('%.0f-0', last_number), 'y', what, 'e', event)
  bytes = bytes + #event + 64
end
-- The oldest go, many at once, so that few calls do this.
local page = math.min(100, math.floor(kept / 10))
for i = 1, 20 do
  if last_number - first_number < kept + 0 and bytes <= room + 0 then
    break
  end
  local oldest = redis.call('XRANGE', feed, '-', string.format('%.0f-0', last_number - 1), 'COUNT', page)
  for _, entry in ipairs(oldest) do
    bytes = bytes - #entry[2][4] - 64
    first_number = string.match(entry[1], '%d+') + 1
  end
  if #oldest == 0 then
    break
  end
  redis.call('XTRIM', feed, 'MINID', string.format('%.0f-0', first_number))
end
local number, wakes = string.format('%.0f', last_number), ''
if hash ~= '' then
  redis.call('HSET', head, 'n', number, 'h', hash)
  if redis.call('EXISTS', webhooks) == 1 then
    redis.call('HSET', head, 'w', number)
    wakes = '1'
  end
end
redis.call('HSET', head, 'u', string.format('%d', now + lease), 'f', string.format('%.0f', first_number), 'b', string.format('%.0f', bytes))
for agent, cursor, more in string.gmatch(agents, '(%S+) (%S+) (%d)\n') do
  if cursor ~= '-' then
    redis.call('HSET', cursors, agent, cursor)
  end
  redis.call('ZREM', taken, agent)
  if more == '1' then
    redis.call('ZADD', marked, 'NX', string.format('%d', now), agent)
  end
end
if due_entries ~= '' then
  local before = first_due(due)
  add_due(due, now, due_entries)
  local first = first_due(due)
  if not before or first + 0 < before + 0 or before + 0 <= now then -- what is late may be missing in the queue
    due_from = first
    redis.call('HSET', head, 'd', first)
  end
end
return {'ok', number, wakes, string.format('%d', now), due_from or ''}
