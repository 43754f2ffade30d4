-- Stores a new webhook of an organization. It begins after the newest event of the organization's feed.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
-- KEYS[2] = webhooks      hash ow:{cell}:<organization>
-- KEYS[3] = progress      hash owp:{cell}:<organization>
-- KEYS[4] = head          hash oeh:{cell}:<organization>, whose n is the number of that event
--
-- ARGV[1] = credential    the API key presented and the role it needs, see block/api_key.lua
-- ARGV[2] = webhook_id    16 bytes
-- ARGV[3] = settings      as Go writes them
-- ARGV[4] = most          webhooks that an organization may have
--
-- Reply:  {'ok', webhook_id, position}  position the number of that event, 0 for none
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
--         {'over_quota', quota, used, max}
-- Writes: HSET webhooks, progress and organization
--@include count_bytes
local organization, webhooks, progress, head = unpack(KEYS)
local credential, webhook_id, settings, most = unpack(ARGV)

--@block now
--@block api_key
local used = redis.call('HLEN', webhooks)
if used >= tonumber(most) then
  return {'over_quota', 'webhooks', string.format('%d', used), most}
end
local position = redis.call('HGET', head, 'n') or '0'
redis.call('HSET', webhooks, webhook_id, settings)
redis.call('HSET', progress, webhook_id, position .. ' 1 0 0 0 0')
count_bytes(organization, 130 + #settings)
return {'ok', webhook_id, position}
