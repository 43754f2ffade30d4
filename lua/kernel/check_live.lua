-- Checks whether an access token's agent and family are live. Unlike check_token.lua it lets a suspended agent through, which
-- may still read: it stands before other operations, which refuse what that agent may not do.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the token
-- ARGV[2] = token_family     'bound:' and the 16-byte family id of the token; see block/refuse_unbound.lua
--
-- Reply:  {'ok'}
--         {'invalid_token'}
-- Writes: nothing
--@joined
local agent = KEYS[1]
local organization_id, token_family = ARGV[1], ARGV[2]

--@block live_token session=agent
return {'ok'}
