-- Returns the flags w (include/flags.lua) of a new session with thresholds of its own, '=' and percents, or '' for none; and what
-- its restrictions get (include/restrict.lua), so that a charge reads no field more without one below 80.
local function own_thresholds(thresholds)
  if thresholds == '' then
    return '', ''
  end
  local first, r = string.match(thresholds, '%d+'), ''
  if first and first + 0 < 80 then
    r = 't' .. first .. ',' .. first .. '.'
  end
  return 'T' .. string.sub(thresholds, 2) .. '.', r
end
