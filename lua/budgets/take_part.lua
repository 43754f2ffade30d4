-- Replaces a child's part by what the child has used. The child is closed, so that is final. Once: taking again changes
-- nothing. See lua/budgets/README.md.
--
-- KEYS[1] = session          hash s:{cell}:<session>
-- KEYS[2] = parts            hash sp:{cell}:<session>
-- KEYS[3] = events           stream ev:{cell}:<agent>
-- KEYS[4] = agent            hash a:{cell}:<agent>, of the session
--
-- ARGV[1] = child_id         16 bytes
-- ARGV[2] = used_n           actions that the child used
-- ARGV[3] = used_v           micro-USD that it used
-- ARGV[4] = overage          micro-USD
-- ARGV[5] = given_back       micro-USD that rollbacks gave back to it
-- ARGV[6] = audit            see include/audit.lua
--
-- Reply:  {'ok'}
-- Writes: HSET session and parts; XADD events
--@include audit
--@include budget
--@include parts
local session, parts, events, agent = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local child_id, used_n, used_v, overage, given_back, audit = unpack(ARGV)

--@block now

local part = redis.call('HGET', parts, child_id)
local part_n, part_v = read_part(part)
if not part_n then
  return {'ok'}
end
--@read session session_agent used_actions used_value total_overage refunds value_limit delegated_actions delegated_value
--@  children_actions children_value
redis.call('HDEL', parts, '') -- goes on when Redis is full, see lua.go
redis.call('HSET', parts, child_id, string.sub(part, 1, 16) .. 'taken')
if not session_agent then
  return {'ok'} -- Redis has lost the session
end
local most = 9007199254740991 -- what a double counts exactly
local own_given_back, max_committed, max_value = read_budget(refunds, value_limit)
refunds, value_limit = write_budget(string.format('%.0f', math.min(own_given_back + given_back, most)), max_committed, max_value)
redis.call('HSET', session, 'n', string.format('%.0f', used_actions - part_n + used_n), 'v', string.format('%.0f',
  used_value - part_v + used_v),
  'dn', string.format('%.0f', math.max((delegated_actions or 0) - part_n, 0)), 'dv', string.format('%.0f',
    math.max((delegated_value or 0) - part_v, 0)),
  'gb', refunds, 'mv', value_limit, 'kn', string.format('%.0f', (children_actions or 0) + used_n), 'kv', string.format('%.0f',
    (children_value or 0) + used_v))
if overage ~= '0' then
  redis.call('HSET', session, 'ov', string.format('%.0f', math.min((total_overage or 0) + overage, most)))
end
if redis.call('EXISTS', agent) == 1 then -- else an audit trail that begins here would never end
  record(events, audit, now, 'session.child_closed', 'session', string.sub(session, -36), 'child', child_id, 'actions', used_n,
    'charged', used_v, 'overage', overage)
end
return {'ok'}
