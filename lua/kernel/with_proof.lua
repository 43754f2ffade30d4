-- Runs another script's operation once for a DPoP proof (RFC 9449 §11.1): refuses a proof that was used before, and keeps
-- the proof if the operation succeeds. The operation replaces the line that says so; that names its first key and argument.
-- What it refuses uses up no proof, so strangers cannot fill an agent's proofs.
--
-- An agent's proofs stand in two hashes: of the periods of 120 s with even numbers, and of those with odd ones. Each ends a
-- second before its next period begins, so a proof is known for 119 s at least. Instances accept it for 60 s, and for 30 s
-- before its time; the rest is for the difference of their clocks. Only Redis's clock counts here.
--
-- KEYS[1] = proofs       hash pr:{cell}:<agent>:0
-- KEYS[2] = proofs_odd   hash pr:{cell}:<agent>:1; and what follows it: the operation's keys
--
-- ARGV[1] = proof        14 bytes of the SHA-256 of its key and its jti; and what follows it: the operation's arguments
--
-- Reply:  {'outcome', unpack(reply)}  reply the array that the operation returns
--         {'proof_used'}              by an earlier request, whatever it was for
--         {'too_many_proofs'}         the agent has used 100,000 within the last minutes
-- Writes: HSET and PEXPIRE proofs or proofs_odd, after what the operation writes
local proofs, proofs_odd = KEYS[1], KEYS[2]
local proof = ARGV[1]

local function operation()
--@operation KEYS[3] ARGV[2]
end

--@block now

local number = math.floor(now / 120000)
if number % 2 == 1 then
  proofs, proofs_odd = KEYS[2], KEYS[1] -- proofs is the hash of this period now, and proofs_odd that of the one before
end
local kept, kept_before = redis.call('HLEN', proofs), redis.call('HLEN', proofs_odd)
if kept > 0 and redis.call('HEXISTS', proofs, proof) == 1 or kept_before > 0 and redis.call('HEXISTS', proofs_odd, proof) == 1 then
  return {'proof_used'}
end
if kept + kept_before >= 100000 then
  return {'too_many_proofs'}
end

local reply = operation()
if reply[1] == 'ok' then
  redis.call('HSET', proofs, proof, '')
  if kept == 0 then
    redis.call('PEXPIRE', proofs, string.format('%d', (number + 2) * 120000 - now - 1000))
  end
end
return {'outcome', unpack(reply)}
