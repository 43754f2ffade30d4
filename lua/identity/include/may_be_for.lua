-- Says whether an agent's tokens may be for an audience: for the issuer itself ('self') always, for others when they are among the
-- agent's audiences, separated by single spaces ('-' has none). Without that list, for any https URI and any http URI; of these
-- Go lets only those of this machine come here.
local function may_be_for(audience, audiences)
  if audience == 'self' then
    return true
  end
  if audiences == '-' then
    return false
  end
  if audiences then
    return string.find(' ' .. audiences .. ' ', ' ' .. audience .. ' ', 1, true) ~= nil
  end
  return string.find(audience, '^https?://') ~= nil
end
