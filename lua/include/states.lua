-- Says what ended a transaction's session, as far as the transaction is concerned: the time, 'gone' when a session that it
-- belongs to is no longer kept, '' for nothing. What is pending in a session that has ended is rolled back by that.
local function session_end(session_id, s_agent, ended)
  if ended then
    return ended
  elseif session_id and not s_agent then
    return 'gone'
  end
  return ''
end
