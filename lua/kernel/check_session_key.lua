-- Does for a session key what check_token.lua does for an access token.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
--
-- ARGV[1] = organization_id  16 bytes, of the key
-- ARGV[2] = token_family     'key:' and the 16-byte id of the key
--
-- Reply:  {'ok'}
--         {'invalid_token'}
--         {'agent_suspended', since}  in ms since 1970
-- Writes: nothing
local agent, session = KEYS[1], KEYS[2]
local organization_id, token_family = ARGV[1], ARGV[2]

--@block live_token session=session
--@block refuse_suspended
return {'ok'}
