-- Keeps holds that are spent when they expire. Such a hold counts in its session as a lease without actions does (include/leases.lua): in
-- used_value from the begin on, and in leased_value until it is settled or expires. So it outlives the session, and is spent by no more
-- than that time passes. Its member in the leases' zset has the action type behind its value; spent_holds says how many of the members
-- are such holds, none for 0.
local function spent_hold(transaction_id, value, type_name)
  return transaction_id .. '0 ' .. value .. ' ' .. type_name
end

-- Returns the actions and the value of an open lease or of such a hold, and of a hold its action type.
local function read_lease(member)
  local n, v, kind, name = string.match(member, '^(%d+) (%d+)( ?)(.*)$', 17)
  return n, v, kind == ' ' and name or nil
end

-- Returns the day of the agent in which a transaction's day_value counts, and what of it does; nil and 0 for none.
local function day_of(day_value)
  local day, value = string.match(day_value or '', '^(%d+) (%d+)$')
  return tonumber(day), tonumber(value or 0)
end

-- Returns the status of a transaction that is stored with this one: one whose hold was spent is committed.
local function status_after(stored, on_expiry, expires, now)
  return stored == 'pending' and on_expiry and now >= expires + 0 and 'committed' or stored
end

-- Counts one more of them, or one less.
local function count_spent_holds(session, by)
  local count = (redis.call('HGET', session, 'lh') or 0) + by
  if count > 0 then
    redis.call('HSET', session, 'lh', string.format('%d', count))
  else
    redis.call('HDEL', session, 'lh')
  end
end
