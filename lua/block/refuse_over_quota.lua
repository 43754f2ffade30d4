-- Refuses another entry of an index that has reached the quota; '' is unbounded.
-- Takes quota. Sets used.
local used = quota ~= '' and redis.call('ZCARD', $index) or 0
if quota ~= '' and used >= tonumber(quota) then
  return {'over_quota', '$index', string.format('%d', used), quota}
end
