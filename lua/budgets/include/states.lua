-- Returns what ended a transaction's session, as far as the transaction is concerned: the time, 'gone' when its session
-- is no longer kept, '' for nothing. The end of a session rolls its pending transactions back,
-- but not those whose holds are spent when they expire.
local function session_end(session_id, s_agent, ended, on_expiry)
  if on_expiry then
    return ''
  elseif ended then
    return ended
  elseif session_id and not s_agent then
    return 'gone'
  end
  return ''
end
