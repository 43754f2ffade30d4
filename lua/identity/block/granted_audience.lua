-- Finds the audience of the new access token: the one that is wanted, each of it among the family's and among those that its agent's
-- tokens may still be for; or of the family's all that they still may be for. family_audience is false for the issuer alone.
-- Takes agent, audience, family_audience. Sets audience.
if audience == '' and not family_audience then
  audience = 'self'
end
if audience ~= 'self' or family_audience then
  --@include may_be_for
  local agent_audiences = redis.call('HGET', agent, 'audiences')
  local granted, left = family_audience or 'self', {}
  for one in string.gmatch(audience == '' and granted or audience, '%S+') do
    local held = string.find(' ' .. granted .. ' ', ' ' .. one .. ' ', 1, true) and may_be_for(one, agent_audiences)
    if held then
      left[#left + 1] = one
    elseif audience ~= '' then
      return {'audience_not_held', one}
    end
  end
  if #left == 0 then
    return {'audience_not_held', granted}
  end
  audience = table.concat(left, ' ')
end
