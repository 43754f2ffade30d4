-- Lists what a session has set aside for its children, at most 1,000 parts.
--
-- KEYS[1] = parts            hash sp:{cell}:<session>
--
-- Reply:  {'ok', parts}      for each the child's id (16 bytes) and the part (include/parts.lua)
-- Writes: nothing
local parts = KEYS[1]
return {'ok', redis.call('HGETALL', parts)}
