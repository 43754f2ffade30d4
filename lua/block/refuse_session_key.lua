-- Refuses a session key unless $session names it: the session's hash has a field for each of its keys that live, named as scripts take
-- the key, 'key:<id>'. No other caller comes after that word. What no session key may do gives its agent for $session: no key stands there.
if $family >= 'key:' and redis.call('HEXISTS', $session, $family) == 0 then
  return {'invalid_token'}
end
