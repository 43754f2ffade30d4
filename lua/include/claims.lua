-- Writes an organization's claim on an idempotency key: which request has the key, the cell where its outcome will be (4
-- hexadecimal digits, '' for several), and the organization's id as text, by which its claims are found when it is deleted.
-- Go reads a claim too, in claim.go.
local function claim_of(fingerprint, request_id, cell, organization)
  return fingerprint .. request_id .. ' ' .. cell .. ' ' .. string.sub(organization, -36)
end

-- Returns the request that made a claim, nothing when its fingerprint is another. A claim by an early version ends with the
-- request's id.
local function claimant(claim, fingerprint)
  if string.sub(claim, 1, 32) == fingerprint then
    return string.match(claim, '^[^ ]*', 33)
  end
end
