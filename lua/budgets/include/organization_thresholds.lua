-- Tells in the organization's trail which thresholds of its budget, 80 and 100 %, are reached by what is reserved and used: each once in a
-- period of a budget. Returns '1' if the trail has one more, or the end of a period, else ''. The budget's field noted is '<start of the period> <percent>'.
local function noted_of_budget(budget, b)
  local start, noted = string.match(redis.call('HGET', budget, 'noted') or '', '^(%d+) (%d+)$')
  return start and start + 0 == b.start and noted + 0 or 0
end

local function keep_noted(budget, b, noted)
  redis.call('HSET', budget, 'noted', string.format('%.0f %.0f', b.start, noted))
end

local function note_budget(events, audit, now, budget, b)
  local taken, fresh = b.used + b.reserved, b.ended and b.ended.used > 0 and '1' or ''
  if not b.max or taken == 0 or taken * 5 < b.max * 4 then
    return fresh
  end
  local noted = noted_of_budget(budget, b)
  for _, percent in ipairs({80, 100}) do
    if percent > noted and taken * 100 >= b.max * percent then
      fresh = '1'
      keep_noted(budget, b, percent)
      record(events, audit, now, 'budget.threshold', 'budget', 'organization', 'limit', 'max_value_usd', 'threshold', percent,
        'charged', string.format('%.0f', taken), 'max_value', string.format('%.0f', b.max))
    end
  end
  return fresh
end
