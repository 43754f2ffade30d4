-- Returns the score of a family in its agent's index: the time until which it may live, in seconds, plus 2^33 for each time that
-- all families of the agent were revoked, so that families of earlier epochs come first. And that of a token in the index of those
-- that were revoked one by one (end_family.lua).
local function family_score(epoch, at)
  return string.format('%d', epoch * 8589934592 + math.ceil(at / 1000))
end
