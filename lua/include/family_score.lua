-- The score of a family in its agent's index: until when it may live, in seconds, above 2^33 for each time that all families
-- of the agent were revoked, so that those of before come first.
local function family_score(epoch, at)
  return string.format('%.0f', epoch * 8589934592 + math.ceil(at / 1000))
end
