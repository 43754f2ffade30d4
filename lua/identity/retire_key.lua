-- Ends a key at once: instances refuse what it signed as soon as they read their keys again. A record is 'created
-- signs_from ends material'; times in ms since 1970, ends 0 for a key with no successor.
--
-- KEYS[1] = keys     hash k:<kind>
--
-- ARGV[1] = key_id
--
-- Reply:  {'ok'}
--         {'unknown_key'}
--         {'key_in_use'}  it is the one that signs now, or there is no other
-- Writes: HDEL keys; HSET keys when a key that was to sign next is withdrawn
local keys = KEYS[1]
local key_id = ARGV[1]

--@block now

if redis.call('HEXISTS', keys, key_id) == 0 then
  return {'unknown_key'}
end
local signer, signer_from, withdrawn = '', -1, false
local stored = redis.call('HGETALL', keys)
for i = 1, #stored, 2 do
  local signs_from, ends = string.match(stored[i + 1], '^%d+ (%d+) (%d+) ')
  signs_from = tonumber(signs_from or -1)
  -- Of two from the same millisecond on, the one without a successor signs.
  if signs_from <= now and (signs_from > signer_from or signs_from == signer_from and ends == '0') then
    signer, signer_from = i, signs_from
  end
  if stored[i] == key_id and signs_from > now then
    withdrawn = true
  end
end
if signer == '' or stored[signer] == key_id then
  return {'key_in_use'}
end

redis.call('HDEL', keys, key_id)
if withdrawn then
  local created, began, ends, material = string.match(stored[signer + 1], '^(%d+) (%d+) (%d+) (.*)$')
  redis.call('HSET', keys, stored[signer], created .. ' ' .. began .. ' 0 ' .. material)
end
return {'ok'}
