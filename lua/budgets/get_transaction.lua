-- Reads the state of a transaction. The store reads its unchanging fields before, with the session that it belongs
-- to.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>; one that does not exist when the transaction has none
-- KEYS[3] = transaction      hash t:{cell}:<transaction>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
--
-- Reply:  {'ok', now, ended, x, state}  as commit_transaction.lua
--         {'unknown_agent'}
--         {'invalid_token'}             the access token's agent or family is revoked
--         {'unknown_transaction'}
-- Writes: nothing
--@include states
local agent, session, transaction = KEYS[1], KEYS[2], KEYS[3]
local organization_id, agent_id, caller_family = ARGV[1], ARGV[2], ARGV[3]

--@block now
--@block either_caller

local t_a, t_s, t_x, st, v, ov, cm, rb, re, po, hv = unpack(redis.call('HMGET', transaction,
  'a', 's', 'x', 'st', 'v', 'ov', 'cm', 'rb', 're', 'po', 'hv'))
if t_a ~= agent_id then
  return {'unknown_transaction'}
end
local s_a, s_e = unpack(redis.call('HMGET', session, 'a', 'e'))
--@block transaction_state st=st v=v ov=ov cm=cm rb=rb re=re po=po hv=hv
return {'ok', string.format('%d', now), session_end(t_s, s_a, s_e), t_x, state}
