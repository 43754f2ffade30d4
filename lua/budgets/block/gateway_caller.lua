-- Lets the metering gateway pass for a caller without an access token, as an API key does: it settles what it holds whatever became of
-- the agent and of its tokens. No token's family is that word.
-- Takes caller_family. Sets by_gateway, caller_family.
local by_gateway = caller_family == 'gateway'
if by_gateway then
  caller_family = ''
end
