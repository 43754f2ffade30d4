-- Reads the API keys in an organization's hash. The first key has the id '' here. It stands in the fields key, previous_key,
-- previous_until, used_key and hint, its last 4 characters, and is an admin's for good. Every other key has K:<id>, its record
-- (see include/write_api_keys.lua), and k:<SHA-256> of the key, and in a grace time of the one before: its role, its id (16
-- bytes) and when it ends, '' for never. u:<id> is when a key was last used. A key is a table here: id, role, current and
-- previous (SHA-256, previous '' for none), previous_until, used (current was used since it replaced previous), created,
-- expires ('' for never), hint and name.
local no_hash = string.rep('-', 32)

local function read_key(organization, id)
  if id == '' then
    local first = redis.call('HMGET', organization, 'key', 'previous_key', 'previous_until', 'used_key', 'hint', 'created')
    if not first[1] then
      return nil
    end
    return {id = '', role = '3', current = first[1], previous = first[2] or '', previous_until = tonumber(first[3] or 0),
      used = first[4] == first[1], created = first[6], expires = '', hint = first[5], name = ''}
  end
  local record = redis.call('HGET', organization, 'K:' .. id)
  if not record then
    return nil
  end
  local role, created, expires, previous_until, used, hint, name =
    string.match(record, '^(%d) (%d+) (%d*) (%d*) (%d) (%w*) (.*)$', 65)
  local previous = string.sub(record, 33, 64)
  if previous == no_hash then
    previous = ''
  end
  return {id = id, role = role, current = string.sub(record, 1, 32), previous = previous,
    previous_until = tonumber(previous_until) or 0, used = used == '1', created = created, expires = expires, hint = hint,
    name = name}
end

-- Returns all keys, in no order, and when each was last used, by its id.
local function read_keys(organization)
  local keys, used = {read_key(organization, '')}, {}
  local fields = redis.call('HGETALL', organization)
  for i = 1, #fields, 2 do
    local kind, id = string.sub(fields[i], 1, 2), string.sub(fields[i], 3)
    if kind == 'K:' then
      keys[#keys + 1] = read_key(organization, id)
    elseif kind == 'u:' then
      used[id] = fields[i + 1]
    end
  end
  return keys, used
end
