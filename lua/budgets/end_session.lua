-- Ends an active session, which rolls its pending transactions back: the script releases what they hold, and their
-- status follows from this end (see transactionStatus). Its leases stay open until they are settled or expire. Ending again changes nothing and returns the first answer.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = holds            zset sh:{cell}:<session>
-- KEYS[4] = events           stream ev:{cell}:<agent>
-- KEYS[5] = looks            zset sc:{cell}:<session>
-- KEYS[6] = agent_open       zset ao:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
-- ARGV[4] = retention        ms that the session stays readable from now
-- ARGV[5] = audit            see include/audit.lua
--
-- Reply:  {'ok', ended, restrictions}                      ms since 1970; r its flags (include/restrict.lua), '' for none
--         {'unknown_agent'}
--         {'invalid_token'}                     the access token's agent or family is revoked
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_active', ended, revoked, expires_at, now}  in ms since 1970, '' if it has not happened
-- Writes: HSET, HDEL and PEXPIRE session; XADD events, one for each of the first 100 transactions; UNLINK holds; HSET
-- agent; ZREM agent_open
--@include audit
--@include agent_day
--@include flags
local agent, session, holds, events, looks, agent_open = unpack(KEYS)
local organization_id, agent_id, caller_family, retention, audit = unpack(ARGV)

--@block now
--@block either_caller_with_restrictions session=agent

--@read session session_agent expires_at ended_at held_value holds_due noted_flags leased_value refunds restrictions day_holds
--@block refuse_unknown_session
restrictions = restrictions or ''
if ended_at and tonumber(ended_at) < tonumber(expires_at) then
  return {'ok', ended_at, restrictions}
end
--@block refuse_holds_due due=holds_due
local ended = string.format('%d', now)
if ended_at or agent_revoked or now >= tonumber(expires_at) then
  if not ended_at and not agent_revoked then
    redis.call('HDEL', session, '') -- goes on when Redis is full, see lua.go
    note_expired(session, events, audit, now, noted_flags or '')
  end
  return {'not_active', '', agent_revoked or '', expires_at, ended}
end

-- One whose usage another is still to take stays; see lua/budgets/README.md. So does one with leases, or with holds that are spent when
-- they expire: it has its time to live from the last of them.
local stays = string.find(restrictions, 'k', 1, true) or string.find(restrictions, 'c', 1, true) and redis.call('EXISTS', looks) == 1
--@block write_end
if not stays and not leased_value then
  redis.call('PEXPIRE', session, retention)
end
return {'ok', ended, restrictions}
