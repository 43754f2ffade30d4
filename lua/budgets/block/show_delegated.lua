-- Shows what is set aside for children (include/parts.lua) as delegated: takes it off the actions and the value used, and puts
-- it behind gb. r are the session's flags.
if $r and string.find($r, 'c', 1, true) then
  local s_dn, s_dv = unpack(redis.call('HMGET', session, 'dn', 'dv'))
  $n, $v = string.format('%.0f', $n - s_dn), string.format('%.0f', $v - s_dv)
  $gb = $gb .. ' ' .. s_dn .. ' ' .. s_dv
end
