-- Creates an organization with its first API key.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
--
-- ARGV[1] = name
-- ARGV[2] = metadata      JSON object, '' for none
-- ARGV[3] = new_key       SHA-256 of the API key (32 bytes) and its last 4 characters
--
-- Reply:  {'ok', created, id}  created in ms since 1970, id as text
-- Writes: HSET organization
local organization = KEYS[1]
local name, metadata, new_key = ARGV[1], ARGV[2], ARGV[3]
local key_hash, hint = string.sub(new_key, 1, 32), string.sub(new_key, 33)

--@block now
local created = string.format('%d', now)

local fields = {'name', name, 'key', key_hash, 'hint', hint, 'created', created}
--@block optional_field field=metadata value=metadata
redis.call('HSET', organization, unpack(fields))
return {'ok', created, string.sub(organization, -36)}
