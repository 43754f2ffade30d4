-- Refuses an audience, separated by single spaces, unless the agent's tokens may be for all of it. '' is the issuer alone.
-- Takes agent, audience.
if audience ~= '' then
  --@include may_be_for
  local agent_audiences = redis.call('HGET', agent, 'audiences')
  for one in string.gmatch(audience, '%S+') do
    if not may_be_for(one, agent_audiences) then
      return {'audience_not_held', one}
    end
  end
end
