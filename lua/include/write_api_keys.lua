-- Writes and removes API keys in an organization's hash; include/read_api_keys.lua describes them and stands first, and
-- include/count_bytes.lua, which counts all but the first key. What a rotated key had before and no longer has, end_credential
-- removes.
local function api_key_size(record)
  if not record then
    return 0
  end
  return #record + (string.sub(record, 33, 64) == no_hash and 230 or 330)
end

local function write_key(organization, k)
  local previous_until = string.format('%.0f', k.previous_until)
  if k.id == '' then
    redis.call('HSET', organization, 'key', k.current, 'hint', k.hint)
    if k.previous ~= '' then
      redis.call('HSET', organization, 'previous_key', k.previous, 'previous_until', previous_until)
    end
    if k.used then
      redis.call('HSET', organization, 'used_key', k.current)
    end
    return
  end
  local owner = k.role .. k.id
  local previous = k.previous
  if previous == '' then
    previous = no_hash
  end
  local record = k.current .. previous .. table.concat({k.role, k.created, k.expires, previous_until, k.used and '1' or '0',
    k.hint, k.name}, ' ')
  local stored = redis.call('HGET', organization, 'K:' .. k.id)
  redis.call('HSET', organization, 'K:' .. k.id, record, 'k:' .. k.current, owner .. k.expires)
  count_bytes(organization, api_key_size(record) - api_key_size(stored))
  if k.previous ~= '' then
    if k.expires ~= '' and tonumber(k.expires) < k.previous_until then
      previous_until = k.expires
    end
    redis.call('HSET', organization, 'k:' .. k.previous, owner .. previous_until)
  end
end

local function end_credential(organization, hash)
  redis.call('HDEL', organization, 'k:' .. hash)
end

local function remove_key(organization, k)
  if k.id == '' then
    redis.call('HDEL', organization, 'key', 'previous_key', 'previous_until', 'used_key', 'hint', 'u:')
  else
    local stored = redis.call('HGET', organization, 'K:' .. k.id)
    redis.call('HDEL', organization, 'K:' .. k.id, 'k:' .. k.current, 'k:' .. k.previous, 'u:' .. k.id)
    count_bytes(organization, -api_key_size(stored))
  end
end
