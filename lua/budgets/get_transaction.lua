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
-- Reply:  {'ok', now, ended, expires_at, state}  as commit_transaction.lua
--         {'unknown_agent'}
--         {'invalid_token'}             the access token's agent or family is revoked
--         {'unknown_transaction'}
-- Writes: nothing
--@include states
local agent, session, transaction = KEYS[1], KEYS[2], KEYS[3]
local organization_id, agent_id, caller_family = ARGV[1], ARGV[2], ARGV[3]

--@block now
--@block either_caller session=session

--@read transaction transaction_agent transaction_session transaction_expires_at transaction_status transaction_charged_value
--@  transaction_overage transaction_committed_at transaction_rolled_back_at transaction_reason transaction_post_state
--@  transaction_held_value transaction_on_expiry
if transaction_agent ~= agent_id then
  return {'unknown_transaction'}
end
--@read session session_agent session_ended_at
--@block transaction_state status=transaction_status charged=transaction_charged_value overage=transaction_overage committed=transaction_committed_at
--@  rolled=transaction_rolled_back_at reason=transaction_reason post=transaction_post_state held=transaction_held_value
return {'ok', string.format('%d', now), session_end(transaction_session, session_agent, session_ended_at, transaction_on_expiry),
  transaction_expires_at, state}
