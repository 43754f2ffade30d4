-- Begins a transaction without a session: it holds nothing and only stores its state. The agent's index leaves out the
-- last two bytes of its id, which are the cell.
--
-- KEYS[1] = agent               hash a:{cell}:<agent>
-- KEYS[2] = transaction         hash t:{cell}:<transaction>
-- KEYS[3] = agent_transactions  zset at:{cell}:<agent>
-- KEYS[4] = events              stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id     16 bytes, of the access token
-- ARGV[2] = agent_id            16 bytes
-- ARGV[3] = caller_family       'family:' and the 16-byte family id of the access token
-- ARGV[4] = transaction_id      16 bytes
-- ARGV[5] = lifetime            ms that it may be pending
-- ARGV[6] = retention           ms that it stays readable after that
-- ARGV[7] = audit               see include/audit.lua
-- ARGV[8] = first_field         and what follows it: names and values of what the transaction only keeps
--
-- Arguments: three name the caller, the others are stored or bound what is stored; packing would only hide them.
--
-- Reply:  {'ok', transaction_id, sequence, created, expires}  sequence 0, times in ms since 1970
--         {'unknown_agent'}
--         {'invalid_token'}  the access token's agent or family is revoked
--         {'agent_suspended', since}  in ms since 1970
-- Writes: HSET and PEXPIRE transaction; ZADD and PEXPIRE agent_transactions; XADD events
--@include audit
local agent, transaction, agent_transactions, events = unpack(KEYS)
local organization_id, agent_id, caller_family, transaction_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local lifetime, retention, audit, first_field = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7], ARGV[8]

--@block now
--@block agent_caller session=agent
--@block refuse_suspended

local created, expires = string.format('%d', now), string.format('%d', now + lifetime)
local kept = lifetime + retention
local ttl = string.format('%d', kept)
redis.call('HSET', transaction, 'a', agent_id, 'st', 'pending', 'b', created, 'x', expires,
  first_field, unpack(ARGV, 9))
redis.call('PEXPIRE', transaction, ttl)
redis.call('ZADD', agent_transactions, 0, string.sub(transaction_id, 1, 14))
--@block extend_ttl key=agent_transactions
record(events, audit, now, 'transaction.begun', 'transaction', transaction_id)
return {'ok', transaction_id, '0', created, expires}
