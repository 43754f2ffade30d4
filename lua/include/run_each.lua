-- Runs an operation for several calls that go to Redis as one, each with so many keys and arguments. Returns an array with the
-- reply to each. A call that fails has {'!', error} there, and the others are not concerned: Redis refuses a write before a
-- script's first one or not at all.
local function run_each(operation, keys, arguments)
  local replies = {}
  for i = 0, #KEYS / keys - 1 do
    local ran, reply = pcall(operation, i * keys, i * arguments)
    if not ran then
      reply = {'!', type(reply) == 'table' and reply.err or reply}
    end
    replies[i + 1] = reply
  end
  return replies
end
