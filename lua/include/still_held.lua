-- Returns those of some scopes that are among others, both separated by single spaces, in their order.
local function still_held(scopes, others)
  local held = {}
  for scope in string.gmatch(scopes, '%S+') do
    if string.find(' ' .. others .. ' ', ' ' .. scope .. ' ', 1, true) then
      held[#held + 1] = scope
    end
  end
  return table.concat(held, ' ')
end
