-- Reads and writes a session's field gb: '<given back>', the micro-USD that rollbacks have taken off v. So v and gb
-- together are what was ever charged or committed. With max_committed it is '<given back> <max_committed> <max_value>',
-- and mv is the lower of max_value and what max_committed leaves: a script that compares with mv alone enforces both.
-- Such a session always has h, so a charge reads gb. One with restrictions (include/restrict.lua) and without max_committed
-- has no_max_committed there, which limits nothing. read_budget returns what was given back, max_committed (nil for
-- none) and max_value; write_budget takes them, and returns gb and mv.
local no_max_committed = '9007199254740991' -- what a double counts exactly

local function read_budget(gb, mv)
  local given_back, max_committed, max_value = string.match(gb or '0', '^(%d+) ?(%d*) ?(%d*)$')
  if max_committed == '' then
    return given_back, nil, mv
  end
  return given_back, max_committed, max_value
end

local function write_budget(given_back, max_committed, max_value)
  if not max_committed then
    return given_back, max_value
  end
  local mv = tonumber(max_value)
  if max_committed ~= no_max_committed then
    mv = math.max(math.min(mv, max_committed - given_back), 0) -- less if it was exceeded while the session observed
  end
  return given_back .. ' ' .. max_committed .. ' ' .. max_value, string.format('%d', mv)
end
