-- Refuses a request for more that is decided otherwise.
if status ~= 'pending' then
  return {'request_decided'}
end
