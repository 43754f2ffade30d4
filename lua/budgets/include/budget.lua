-- Reads and writes a session's field refunds: '<given back>', the micro-USD that rollbacks have taken off used_value. So
-- used_value and refunds together are what was ever charged or committed. With max_committed it is '<given back>
-- <max_committed> <max_value>', and value_limit is the lower of max_value and what max_committed leaves: a script that compares
-- with value_limit alone enforces both. Such a session always has h, so a charge reads refunds. One with restrictions
-- (include/restrict.lua) and without max_committed has no_max_committed there, which limits nothing. read_budget returns what
-- was given back, max_committed (nil for none) and max_value; write_budget takes them, and returns refunds and value_limit.
local no_max_committed = '9007199254740991' -- what a double counts exactly

local function read_budget(refunds, value_limit)
  local given_back, max_committed, max_value = string.match(refunds or '0', '^(%d+) ?(%d*) ?(%d*)$')
  if max_committed == '' then
    return given_back, nil, value_limit
  end
  return given_back, max_committed, max_value
end

local function write_budget(given_back, max_committed, max_value)
  if not max_committed then
    return given_back, max_value
  end
  local value_limit = tonumber(max_value)
  if max_committed ~= no_max_committed then
    value_limit = math.max(math.min(value_limit, max_committed - given_back),
      0) -- less if it was exceeded while the session observed
  end
  return given_back .. ' ' .. max_committed .. ' ' .. max_value, string.format('%d', value_limit)
end
