-- Refuses access tokens of an agent with restrictions that are not marked one by one (identity/block/mark_family.lua).
-- One that is bound to no
-- key, of an agent whose tokens must be bound (RFC 9449): its family comes as 'family:<id>', a session key as 'key:<id>', that of a bound
-- token as 'bound:<id>'. And one without a refresh token, or a session key, that was issued in an earlier epoch of the agent, which its id names
-- (identity/include/in_epoch.lua).
-- Takes agent, agent_restricted.
if agent_restricted then
  if (string.byte($family) or 0) > 98 and string.find(agent_restricted, 'p', 1, true) then -- 98 is b
    return {'invalid_token'}
  end
  if (string.byte($family, -10) or 0) >= 128 and string.find(agent_restricted, 'e', 1, true) then
    local high, middle, low = string.byte($family, -7, -5)
    if (high * 256 + middle) * 256 + low ~= redis.call('HGET', agent, 'epoch') % 16777216 then
      return {'invalid_token'}
    end
  end
end
