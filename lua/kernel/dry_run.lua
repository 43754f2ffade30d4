-- Returns what another script would reply, and writes nothing. The operation replaces the line that says so. It calls Redis
-- through a table of its own, which lets only reads through: so a dry run checks whatever the operation checks. The operation's
-- reply must not depend on what its own writes return or change.
--
-- Reply:  {'ok', reply}  reply an array as the operation returns it
-- Writes: nothing
local call = redis.call
local reads = {
  TIME = 1, EXISTS = 1, GET = 1, HEXISTS = 1, HGETALL = 1, HGET = 1, HMGET = 1, HLEN = 1, HRANDFIELD = 1, PTTL = 1, XLEN = 1,
  XRANGE = 1, XREVRANGE = 1, ZCARD = 1, ZCOUNT = 1, ZRANGE = 1, ZRANGEBYSCORE = 1, ZSCORE = 1, ZREVRANGEBYLEX = 1,
}

local function read_only(command, ...)
  if reads[command] then
    return call(command, ...)
  end
end

local redis = {call = read_only}

local function operation()
--@operation KEYS[1] ARGV[1]
end

return {'ok', operation()}
